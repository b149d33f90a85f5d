#!/usr/bin/env bash
# Checks that each record of a job is written only by the file that owns it (owners.py), and that the check notices
# every kind of write elsewhere, also one by a call.
command -v python3 >/dev/null || { echo "needs python3"; exit 1; }
cd "$(dirname "$0")/../.." || exit 1
failed=0
python3 tests/arrows/owners.py || failed=1

copy=$(mktemp -d) || exit 1
trap 'rm -rf "$copy"' EXIT

# check CODE: the check's result for the job with a function with this code in the phase of the final turns.
check() {
  rm -rf "$copy/job" && cp -r placer/job "$copy/job"
  printf '\nstatic void added(struct tfc_job_measuring *t, struct tfc_job_candidate *k) {\n  %s\n}\n' "$1" >>"$copy/job/final.c"
  python3 tests/arrows/owners.py "$copy/job"
}

# notices CODE WHAT: the code has one fault, and the message says WHAT.
notices() {
  local found
  found=$(check "$1")
  if [ $? -ne 1 ] || [ "$(wc -l <<<"$found")" -ne 1 ] || [[ $found != *"/final.c:"*"$2,"* ]]; then
    printf '%s was not noticed: %s\n' "$1" "$found"
    failed=1
  fi
}
notices 't->clock->phase = TFC_JOB_DONE;' 'struct tfc_job_clock'
notices 't->schedule->search_until_s += 1;' 'struct tfc_job_schedule'
notices 't->candidates->episodes++;' 'struct tfc_job_candidates'
notices '--t->candidates->list.count;' 'struct tfc_job_candidates'
notices 't->candidates->list.data[t->candidates->best].median_us = 1;' 'struct tfc_job_candidate'
notices 't->model->calibration.kinds[0].dispatch_us = 1;' 'struct tfc_job_model'
notices 't->model->machine->devices[0].memory = 1;' 'struct tfc_job_model'
notices 't->journal->rows.data[0].raw = true;' 'struct tfc_job_journal_row'
notices 'k->solution.device[0] = 1;' 'struct tfc_job_candidate'
notices 'memset(&t->candidates->list, 0, sizeof t->candidates->list);' 'struct tfc_job_candidates'
notices '*t->clock = (struct tfc_job_clock){.total_s = 1};' 'struct tfc_job_clock'
notices 'struct tfc_job_candidate made = {.name = k->name};' 'struct tfc_job_candidate'
notices 'tfc_learned_add(t->model->learned, solution, 1, 1, NULL);' 'calls tfc_learned_add'
notices 'tfc_store_put_tuning(t->journal->store, "");' 'calls tfc_store_put_tuning'
notices 'tfc_store_drop_raw(t->journal->store, 1);' 'calls tfc_store_drop_raw'
notices 'tfc_store_finish_run(t->journal->store, 1, NULL);' 'calls tfc_store_finish_run'

# allows CODE: the code has no fault.
allows() {
  check "$1" || { printf '%s is no fault\n' "$1" && failed=1; }
}
allows 'if (t->clock->phase == TFC_JOB_DONE && t->model->memory_ratio >= 1) return; // t->clock->phase = 1'
allows 'if (tfc_learned_readings(t->model->learned)) return; // tfc_learned_add(t->model->learned, s, 1, 1, NULL)'
allows 'struct tfc_job_candidate none = {0};'
exit $failed
