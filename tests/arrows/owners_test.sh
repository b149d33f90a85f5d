#!/usr/bin/env bash
# Checks that each record of a job is written only by the file that owns it (owners.py), and that the check notices
# every kind of write elsewhere, also one by a call.
command -v python3 >/dev/null || { echo "needs python3"; exit 1; }
cd "$(dirname "$0")/../.." || exit 1
failed=0
python3 tests/arrows/owners.py || failed=1

# notices WRITE RECORD: a write in the phase of the final turns is one fault, in that record.
copy=$(mktemp -d) || exit 1
trap 'rm -rf "$copy"' EXIT
notices() {
  rm -rf "$copy/job" && cp -r placer/job "$copy/job"
  printf '\nstatic void fault(struct tfc_job_measuring *t, struct tfc_job_candidate *k) {\n  %s\n}\n' "$1" >>"$copy/job/final.c"
  local found
  found=$(python3 tests/arrows/owners.py "$copy/job")
  if [ $? -ne 1 ] || [ "$(wc -l <<<"$found")" -ne 1 ] || [[ $found != *"/final.c:"*"struct $2,"* ]]; then
    printf '%s was not noticed: %s\n' "$1" "$found"
    failed=1
  fi
}
notices 't->clock->phase = TFC_JOB_DONE;' tfc_job_clock
notices 't->schedule->search_until_s += 1;' tfc_job_schedule
notices 't->candidates->episodes++;' tfc_job_candidates
notices '--t->candidates->list.count;' tfc_job_candidates
notices 't->candidates->list.data[t->candidates->best].median_us = 1;' tfc_job_candidate
notices 't->model->calibration.kinds[0].dispatch_us = 1;' tfc_job_model
notices 't->model->machine->devices[0].memory = 1;' tfc_job_model
notices 't->journal->rows.data[0].raw = true;' tfc_job_journal_row
notices 'k->solution.device[0] = 1;' tfc_job_candidate
notices 'memset(&t->candidates->list, 0, sizeof t->candidates->list);' tfc_job_candidates
notices '*t->clock = (struct tfc_job_clock){.total_s = 1};' tfc_job_clock
notices 'struct tfc_job_candidate made = {.name = k->name};' tfc_job_candidate


# notices_call CALL: such a call in the phase of the final turns is one fault.
notices_call() {
  rm -rf "$copy/job" && cp -r placer/job "$copy/job"
  printf '\nstatic void fault(struct tfc_job_measuring *t) {\n  %s;\n}\n' "$1" >>"$copy/job/final.c"
  local found
  found=$(python3 tests/arrows/owners.py "$copy/job")
  if [ $? -ne 1 ] || [ "$(wc -l <<<"$found")" -ne 1 ] || [[ $found != *"/final.c:"*" calls ${1%%(*},"* ]]; then
    printf '%s was not noticed: %s\n' "$1" "$found"
    failed=1
  fi
}
notices_call 'tfc_learned_add(t->model->learned, solution, 1, 1, NULL)'
notices_call 'tfc_store_put_tuning(t->journal->store, "")'

# allows READ: this is no write.
allows() {
  rm -rf "$copy/job" && cp -r placer/job "$copy/job"
  printf '\nstatic void reader(struct tfc_job_measuring *t) {\n  %s\n}\n' "$1" >>"$copy/job/final.c"
  python3 tests/arrows/owners.py "$copy/job" || { printf '%s is no write\n' "$1" && failed=1; }
}
allows 'if (t->clock->phase == TFC_JOB_DONE && t->model->memory_ratio >= 1) return; // t->clock->phase = 1'
allows 'if (tfc_learned_readings(t->model->learned)) return; // tfc_learned_add(t->model->learned, s, 1, 1, NULL)'
allows 'struct tfc_job_candidate none = {0};'
exit $failed
