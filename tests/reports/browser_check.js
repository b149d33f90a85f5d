// Put into a page before its own script: collects what the console would say, and when all has run, whether texts lie
// over each other or outside of their picture, and whether the page is wider than the window. The findings are left in
// an element that --dump-dom shows.
(function () {
  'use strict';
  const faults = [];
  window.addEventListener('error', (e) => faults.push('error: ' + e.message + ' at line ' + e.lineno));
  window.addEventListener('unhandledrejection', (e) => faults.push('rejected: ' + e.reason));
  ['error', 'warn'].forEach((name) => { console[name] = (...a) => faults.push('console: ' + a.join(' ')); });
  const visible = (r) => r.width > 0 && r.height > 0;
  const say = (e) => '"' + e.textContent.trim().slice(0, 40) + '"';
  // The ink of a line of text is less high than its box.
  const box = (e) => { const r = e.getBoundingClientRect(); return { l: r.left + 0.5, r: r.right - 0.5, t: r.top + 0.2 * r.height, b: r.bottom - 0.2 * r.height, width: r.width, height: r.height }; };
  function apart(where, list, frame) {
    const boxes = list.map((e) => [e, box(e)]).filter((x) => visible(x[1]));
    const f = frame.getBoundingClientRect();
    boxes.forEach(([e, a], i) => {
      if (a.l < f.left - 2 || a.r > f.right + 2 || a.t < f.top - 2 || a.b > f.bottom + 2) faults.push(where + ': ' + say(e) + ' is outside');
      for (let k = i + 1; k < boxes.length; k++) {
        const b = boxes[k][1];
        if (Math.min(a.r, b.r) - Math.max(a.l, b.l) > 1 && Math.min(a.b, b.b) - Math.max(a.t, b.t) > 1)
          faults.push(where + ': ' + say(e) + ' lies over ' + say(boxes[k][0]));
      }
    });
    return boxes.length;
  }
  let tableBefore = '';
  new MutationObserver(() => { // before the page's own script runs
    const table = document.getElementById('operations');
    if (table && document.getElementById('data') && !tableBefore) tableBefore = table.outerHTML;
  }).observe(document, { childList: true, subtree: true });
  window.addEventListener('load', () => {
    let texts = 0, plots = 0, actions = 0;
    const event = (e, type, x, y, more) => e.dispatchEvent(new PointerEvent(type, Object.assign({ clientX: x, clientY: y, pointerId: 1, bubbles: true }, more)));
    try {
      document.querySelectorAll('figure svg').forEach((svg) => {
        if (!visible(svg.getBoundingClientRect())) return;
        plots++;
        texts += apart(svg.closest('section').id, [...svg.querySelectorAll('text')], svg);
      });
      document.querySelectorAll('.timeline').forEach((t) => { texts += apart('timeline', [...t.querySelectorAll('.lane, .axis i')], t); });
      document.querySelectorAll('.map').forEach((m) => { texts += apart('map', [...m.querySelectorAll('span')], m); });
      document.querySelectorAll('.note').forEach((e) => { if (/gnuplot/.test(e.textContent)) faults.push('not drawn: ' + e.textContent.slice(0, 200)); });
      document.querySelectorAll('.card b, .card span, h1, h2, h3').forEach((e) => {
        if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth) faults.push('cut off: ' + say(e));
      });
      // A tile can be moved aside, but nobody sees that: what does not fit looks cut off.
      document.querySelectorAll('.tiles > div').forEach((e) => {
        if (!e.clientWidth || e.scrollWidth <= e.clientWidth + 1) return;
        const edge = e.getBoundingClientRect().left + e.clientWidth;
        const cut = [...e.querySelectorAll('td, th, li, p')].find((x) => { const r = document.createRange(); r.selectNodeContents(x); return r.getBoundingClientRect().right > edge + 1; });
        if (cut) faults.push('cut off in a tile: ' + say(cut));
      });
      // A column so narrow that words come letter by letter.
      document.querySelectorAll('td, th').forEach((e) => {
        const r = e.getBoundingClientRect();
        if (r.width < 45 && r.height > 90 && e.textContent.trim().length > 4) faults.push('letter by letter: ' + say(e));
      });
      // A telephone shows all columns: none lies beyond the edge of a table that has to be moved aside.
      if (innerWidth < 700) document.querySelectorAll('td').forEach((e) => {
        const r = e.getBoundingClientRect();
        if (visible(r) && r.right > innerWidth + 1 && !e.closest('details')) faults.push('beyond the edge: ' + say(e) + ' in ' + (e.closest('[id]') || {}).id);
      });
      const wide = document.documentElement.scrollWidth;
      if (wide > innerWidth) {
        const who = [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll, pre, figure, .timeline, .tiles > div'));
        faults.push('the page is ' + wide + ' wide in ' + innerWidth + ': ' + who.slice(0, 3).map((e) => e.tagName + '.' + e.className + ' in ' + (e.closest('[id]') || {}).id).join(', '));
      }
      // What a reader does.
      const find = document.getElementById('find'), rows = () => document.querySelectorAll('#operations tbody tr');
      if (find && rows().length) {
        // The script writes figures with as many digits and the units that the page has without it.
        const plain = new DOMParser().parseFromString(tableBefore, 'text/html').querySelectorAll('tbody tr');
        const shape = (e) => e.textContent.replace(/\d/g, '0');
        if (!plain.length) faults.push('no table without the script');
        [...rows()].forEach((r, k) => {
          const was = plain[k];
          if (was && shape(was) !== shape(r)) faults.push('the script writes "' + r.textContent + '", the page "' + was.textContent + '"');
        });
        const first = rows()[0], name = first.cells[0].textContent;
        first.click();
        if (!document.querySelector('#operations tr.found')) faults.push('a click marks no row');
        if (document.querySelector('.leaf') && !document.querySelector('.map > .found')) faults.push('a click shows nothing on the map');
        find.value = name;
        find.dispatchEvent(new Event('input'));
        if (!rows().length || ![...rows()].every((r) => r.textContent.toLowerCase().includes(name.toLowerCase()))) faults.push('the search finds other operations');
        find.value = '';
        find.dispatchEvent(new Event('input'));
        // A click on a box of the map lists the operations in it, also where it stands for small scopes.
        const data = JSON.parse(document.getElementById('data').textContent);
        document.querySelectorAll('.leaf').forEach((box) => {
          const inside = data.nodes.filter((n) => n[9] === Number(box.id.slice(1)));
          box.click();
          const listed = document.getElementById('found').textContent.match(/(\d+) of/);
          if (inside.length && (!listed || Number(listed[1]) !== inside.length)) faults.push('the box ' + box.textContent + ' lists ' + document.getElementById('found').textContent);
        });
        find.dispatchEvent(new Event('input'));
        const head = document.querySelectorAll('#operations th')[3];
        head.click();
        head.click();
        actions++;
      }
      const line = document.querySelector('.timeline'), svg = line && line.querySelector('svg');
      if (line) {
        const r = line.getBoundingClientRect(), before = svg.getAttribute('viewBox');
        event(line, 'pointermove', r.left + r.width / 3, r.top + 30);
        if (document.getElementById('tip').hidden) faults.push('no label under the pointer');
        line.dispatchEvent(new WheelEvent('wheel', { deltaY: -100, clientX: r.left + 50, clientY: r.top + 30, cancelable: true }));
        if (svg.getAttribute('viewBox') === before) faults.push('the wheel does not zoom');
        texts += apart('timeline, zoomed', [...line.querySelectorAll('.lane, .axis i')], line);
        document.querySelector('[data-zoom=all]').click();
        if (svg.getAttribute('viewBox').split(' ').map(Number).join() !== before.split(' ').map(Number).join()) faults.push('the whole step is not shown again');
        event(line, 'pointerleave', 0, 0);
        actions++;
      }
    } catch (e) { faults.push('thrown: ' + e + ' ' + e.stack); }
    const out = document.createElement('pre');
    out.id = 'findings';
    out.hidden = true;
    out.textContent = '\nFINDINGS ' + texts + ' texts, ' + plots + ' plots, ' + actions + ' tried\n' + faults.map((f) => 'FAULT ' + f.replace(/\n/g, ' ')).join('\n') + '\nEND\n';
    document.body.append(out);
  });
})();
