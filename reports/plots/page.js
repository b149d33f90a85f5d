// Adds what pictures cannot do: labels under the pointer, zoom and pan of the timeline, a table of operations to search
// and sort, and one operation shown on the map, in the timeline and in the table at once.
(function () {
  'use strict';
  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($('data').textContent);
  const ID = 0, NAME = 1, OP = 2, DEVICE = 3, STEP = 4, HALF = 5, BYTES = 6, FLOP = 7, SLACK = 8, BOX = 9, FAMILY = 10;
  const byId = new Map(data.nodes.map((n) => [n[ID], n]));
  const tip = $('tip');
  const number = (x, digits) => Number(x.toPrecision(digits || 3)).toString();
  function time(us) {
    if (us === null || us === undefined) return '–';
    if (us >= 1e6) return (us / 1e6).toFixed(2) + ' s';
    if (us >= 1e3) return (us / 1e3).toFixed(us < 1e4 ? 3 : us < 1e5 ? 2 : 1) + ' ms';
    return us.toFixed(us < 10 ? 2 : 1) + ' us';
  }
  function size(b) {
    if (b === null) return '–';
    const names = ['B', 'kB', 'MB', 'GB', 'TB'];
    let i = 0;
    for (; b >= 999.5 && i < 4; i++) b /= 1000;
    return b.toFixed(i === 0 || b >= 99.95 ? 0 : 1) + ' ' + names[i];
  }
  const count = (x) => x === null ? '–' : x >= 1e9 ? number(x / 1e9) + ' G' : x >= 1e6 ? number(x / 1e6) + ' M' : x >= 1e3 ? number(x / 1e3) + ' k' : number(x);
  const nameOf = (id) => (byId.has(id) ? byId.get(id)[NAME] : 'an operation without a time of its own');
  function showTip(event, text) {
    tip.textContent = text;
    tip.hidden = !text;
    if (!text) return;
    const w = tip.offsetWidth, h = tip.offsetHeight;
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - w - 6)) + 'px';
    tip.style.top = (event.clientY + 18 + h > innerHeight ? event.clientY - h - 10 : event.clientY + 18) + 'px';
  }

  // --- Showing one operation in the map, the timeline and the table --------------------------------------------------
  const device = new Map(data.devices.map((d) => [d[0], d[1]]));
  let chosen = null;
  function choose(id, from) {
    chosen = id;
    document.querySelectorAll('.map > .found').forEach((e) => e.classList.remove('found'));
    const node = byId.get(id);
    if (!node) return;
    ['a', 'r'].forEach((side) => { const box = $(side + node[BOX]); if (box) box.classList.add('found'); });
    if (from !== 'table' && find) { inside = -1; find.value = node[NAME]; fill(); }
    mark();
    if (table) table.querySelectorAll('tbody tr').forEach((r) => r.classList.toggle('found', Number(r.dataset.id) === id));
  }

  // --- Timeline ------------------------------------------------------------------------------------------------------
  const LANE = 66, BARS = 20, HEIGHT = 24, ARRIVING = 53, THICK = 7, WIDTH = 100000;
  const line = document.querySelector('.timeline');
  let left = 0, shown = data.end; // nanoseconds
  let mark = function () {};
  if (line && data.end > 0) {
    const svg = line.querySelector('svg'), axis = line.querySelector('.axis'), lanes = data.devices.length;
    const outline = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    outline.setAttribute('class', 'chosen');
    svg.append(outline);
    // An operation that runs several times outside of loops runs in pieces: each has only a part of its FLOP.
    const runs = new Map();
    data.ops.forEach((o) => runs.set(o[0], (runs.get(o[0]) || 0) + 1));
    const sorted = data.devices.map((d, k) => data.ops.filter((o) => o[1] === k).sort((a, b) => a[2] - b[2]));
    document.querySelector('#timeline .tools').hidden = false;
    const draw = function () {
      shown = Math.min(Math.max(shown, 200), data.end);
      left = Math.min(Math.max(left, 0), data.end - shown);
      svg.setAttribute('viewBox', (left / data.end) * WIDTH + ' 0 ' + (shown / data.end) * WIDTH + ' ' + lanes * LANE);
      const length = (shown / 1e3) * data.factor, begin = (left / 1e3) * data.factor;
      const many = Math.max(2, Math.min(9, Math.floor(line.clientWidth / 110)));
      let step = Math.pow(10, Math.floor(Math.log10(length / many)));
      while (length / step > many) step *= length / step > 2.5 * many ? 5 : 2;
      axis.textContent = '';
      for (let at = Math.ceil(begin / step) * step; at < begin + length; at += step) {
        const where = (100 * (at - begin)) / length;
        if (where > 94) break;
        const i = document.createElement('i');
        i.style.left = where + '%';
        i.textContent = number(Math.round(at / step) * step, 6) + (axis.childElementCount ? '' : ' ' + data.unit);
        axis.append(i);
      }
    };
    const at = (event) => {
      const r = line.getBoundingClientRect();
      return [left + ((event.clientX - r.left) / r.width) * shown, event.clientY - r.top];
    };
    const zoom = function (factor, around) {
      left = around - (around - left) / factor;
      shown /= factor;
      draw();
    };
    // Finds the last item under the pointer, or at most two pixels beside it.
    const hit = function (event) {
      const [t, y] = at(event), lane = Math.floor(y / LANE), within = y - lane * LANE, slip = (2 * shown) / line.clientWidth;
      if (lane < 0 || lane >= lanes) return null;
      if (within >= ARRIVING - 3) {
        const x = data.transfers.find((x) => x[3] === lane && x[4] - slip <= t && t <= x[4] + x[5] + slip);
        return x ? { transfer: x, lane: lane } : null;
      }
      const list = sorted[lane];
      let low = 0, high = list.length;
      while (low < high) { const mid = (low + high) >> 1; if (list[mid][2] <= t + slip) low = mid + 1; else high = mid; }
      for (let i = low - 1; i >= 0 && i >= low - 8; i--) if (t <= list[i][2] + list[i][3] + (i === low - 1 ? slip : 0)) return { op: list[i], lane: lane };
      const gap = data.gaps.find((g) => g[0] === lane && g[1] <= t && t <= g[1] + g[2]);
      return gap ? { gap: gap, lane: lane } : null;
    };
    const describe = function (h) {
      if (!h) return '';
      const on = data.devices[h.lane][0];
      if (h.op) {
        const n = byId.get(h.op[0]);
        return (n ? n[OP] + '\n' + n[NAME] : 'operation ' + h.op[0]) + '\n' + time(h.op[3] / 1e3) + ' on ' + on + ', begins at ' +
          time(h.op[2] / 1e3) + (n ? '\noutput ' + size(n[BYTES]) + (n[FLOP] && (data.loops || runs.get(n[ID]) === 1) ? ', ' + number(n[FLOP] / h.op[3]) + ' GFLOP/s' : '') : '');
      }
      if (h.transfer) {
        const x = h.transfer;
        return 'transfer of ' + nameOf(x[0]) + ':' + x[1] + '\n' + size(x[6]) + ' from ' + data.devices[x[2]][0] + ' to ' + on + '\n' +
          time(x[5] / 1e3) + ', begins at ' + time(x[4] / 1e3);
      }
      const g = h.gap;
      if (g[6] < 0) return on + ' has nothing more to do: ' + time(g[2] / 1e3);
      return on + ' stands still for ' + time(g[2] / 1e3) + (g[3] > 0 ? '\n' + time(g[3] / 1e3) + ' for ' + nameOf(g[7]) : '') +
        (g[4] > 0 ? '\n' + time(g[4] / 1e3) + ' for its transfer' : '') + (g[5] > 0 ? '\n' + time(g[5] / 1e3) + ' to begin' : '') +
        '\nbefore ' + nameOf(g[6]);
    };
    mark = function () {
      outline.setAttribute('d', data.ops.filter((o) => o[0] === chosen).map((o) => {
        const x = (o[2] / data.end) * WIDTH, w = Math.max(8, (o[3] / data.end) * WIDTH);
        return 'M' + x + ' ' + (o[1] * LANE + BARS) + 'h' + w + 'v' + HEIGHT + 'h' + -w + 'z';
      }).join(''));
    };
    const pointers = new Map();
    let moved = false;
    line.addEventListener('pointerdown', (e) => { pointers.set(e.pointerId, e); moved = false; line.setPointerCapture(e.pointerId); });
    line.addEventListener('pointermove', (e) => {
      const before = pointers.get(e.pointerId);
      if (!before) { showTip(e, describe(hit(e))); return; }
      const other = [...pointers.values()].find((p) => p.pointerId !== e.pointerId);
      if (other) zoom(Math.max(0.5, Math.min(2, Math.abs(e.clientX - other.clientX) / Math.max(8, Math.abs(before.clientX - other.clientX)))), at(other)[0]);
      else { left -= ((e.clientX - before.clientX) / line.clientWidth) * shown; draw(); }
      moved = moved || Math.abs(e.clientX - before.clientX) > 2;
      pointers.set(e.pointerId, e);
    });
    const release = (e) => pointers.delete(e.pointerId);
    line.addEventListener('pointerup', (e) => {
      release(e);
      if (moved) return;
      const h = hit(e);
      showTip(e, describe(h));
      if (h) choose(h.op ? h.op[0] : h.transfer ? h.transfer[0] : h.gap[6], 'timeline');
    });
    line.addEventListener('pointercancel', release);
    line.addEventListener('pointerleave', () => { tip.hidden = true; });
    line.addEventListener('wheel', (e) => { e.preventDefault(); zoom(e.deltaY < 0 ? 1.25 : 0.8, at(e)[0]); }, { passive: false });
    document.querySelectorAll('[data-zoom]').forEach((b) => b.addEventListener('click', () => {
      if (b.dataset.zoom === 'all') { left = 0; shown = data.end; draw(); } else zoom(b.dataset.zoom === 'in' ? 2 : 0.5, left + shown / 2);
    }));
    addEventListener('resize', draw);
    draw();
  }

  // --- Map -----------------------------------------------------------------------------------------------------------
  document.querySelectorAll('.map').forEach((map) => {
    map.addEventListener('pointermove', (e) => {
      const box = e.target.closest('[id]');
      const share = box && box.dataset.moved;
      showTip(e, box && map.contains(box) && box !== map ? box.dataset.title + (share ? '\n' + share + ' % of its time is elsewhere in the other' : '') : '');
    });
    map.addEventListener('pointerleave', () => { tip.hidden = true; });
    map.addEventListener('click', (e) => {
      const box = e.target.closest('.leaf, .scope');
      if (!box || !find) return;
      const one = data.nodes.find((n) => n[BOX] === Number(box.id.slice(1)));
      inside = box.classList.contains('leaf') ? Number(box.id.slice(1)) : -1;
      find.value = inside < 0 ? box.dataset.scope : '';
      fill();
      if (one) choose(one[ID], 'table');
      $('nodes').scrollIntoView({ behavior: 'smooth' });
    });
    map.querySelectorAll('[title]').forEach((e) => {
      e.dataset.title = e.title;
      e.dataset.scope = e.title.slice(0, e.title.lastIndexOf(' ', e.title.lastIndexOf(' ') - 1)).trim();
      e.removeAttribute('title');
    });
  });

  // --- Table ---------------------------------------------------------------------------------------------------------
  const find = $('find'), table = $('operations'), MOST = 200;
  const columns = [NAME, OP, DEVICE, STEP, HALF, BYTES, FLOP, SLACK];
  const heads = table ? [...table.tHead.rows[0].cells] : [], labels = heads.map((h) => h.textContent);
  let order = STEP, up = false, inside = -1; // inside: only the operations of this box of the map
  function cell(row, text, cls, key) {
    const td = row.insertCell();
    if (cls) td.className = cls;
    if (cls !== 'name') td.dataset.l = cls === 'n' ? labels[row.cells.length - 1] : '';
    if (key) { const i = document.createElement('i'); i.className = 'key ' + key; td.append(i); }
    td.append(text);
  }
  function fill() {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean), body = table.tBodies[0];
    const rows = data.nodes.filter((n) => (inside < 0 || n[BOX] === inside) && words.every((w) => (n[NAME] + ' ' + n[OP] + ' ' + n[DEVICE]).toLowerCase().includes(w)));
    rows.sort((a, b) => {
      const x = a[order], y = b[order];
      if (x === null || y === null) return (x === null) - (y === null) || a[ID] - b[ID]; // what is not known comes last
      const c = typeof x === 'string' ? x.localeCompare(y) : x - y;
      return (up ? c : -c) || a[ID] - b[ID];
    });
    body.textContent = '';
    rows.slice(0, find.value || inside >= 0 || order !== STEP || up ? MOST : 40).forEach((n) => {
      const r = body.insertRow();
      r.dataset.id = n[ID];
      if (n[ID] === chosen) r.className = 'found';
      cell(r, n[NAME], 'name');
      cell(r, n[OP], '', 'f' + n[FAMILY]);
      cell(r, n[DEVICE], '', 'd' + device.get(n[DEVICE]));
      cell(r, time(n[STEP]), 'n');
      cell(r, time(n[HALF]), 'n');
      cell(r, size(n[BYTES]), 'n');
      cell(r, count(n[FLOP]), 'n');
      cell(r, time(n[SLACK]), 'n');
    });
    const all = rows.reduce((sum, n) => sum + n[STEP], 0);
    $('found').textContent = (inside < 0 ? '' : 'of the box on the map: ') + rows.length + ' of ' + data.nodes.length + ' operations, ' + time(all) + (rows.length > body.rows.length ? '; the first ' + body.rows.length + ' are shown' : '');
  }
  if (table) {
    document.querySelector('#nodes .tools').hidden = false;
    $('more').hidden = true;
    find.addEventListener('input', () => { inside = -1; fill(); });
    heads.forEach((th, k) => th.addEventListener('click', () => {
      up = order === columns[k] ? !up : columns[k] <= DEVICE;
      order = columns[k];
      heads.forEach((other) => delete other.dataset.sorted);
      th.dataset.sorted = up ? 'up' : 'down';
      fill();
    }));
    table.tBodies[0].addEventListener('click', (e) => {
      const row = e.target.closest('tr');
      if (row) choose(Number(row.dataset.id), 'table');
    });
    fill();
  }
})();
