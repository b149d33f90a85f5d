// Archive: writes values into a text, or reads them back from it, by the same calls in the same order, so that a
// structure needs one function for both. Values are in this machine's byte order: only tfc on the same machine reads
// them.
//
//   tfc_archive_bytes(a, &t->asked, sizeof t->asked);
//   if (!tfc_archive_count(a, &t->elite_count, TFC_TUNER_ELITE)) return;
//   ...
//   if (a->broken) ...
#ifndef TFC_PLACER_SEARCH_ARCHIVE_H
#define TFC_PLACER_SEARCH_ARCHIVE_H

#include "placer/search/elite.h"

struct tfc_archive {
  struct tfc_text *out; // where to write; NULL: reading
  tfc_str rest;         // the part of the text that has not been read yet
  bool broken;          // the text ended too early, or a value in it cannot be right, or memory ran out
};
// If the archive is broken, reading gives zeros.
void tfc_archive_bytes(struct tfc_archive *archive, void *data, size_t size);
// Writes or reads a number that is at most `most`. False: the archive is broken, and the number is 0.
bool tfc_archive_count(struct tfc_archive *archive, uint32_t *count, uint32_t most);
// Writes or reads the device of every unit.
void tfc_archive_devices(struct tfc_archive *archive, const struct tfc_problem *problem, tfc_device_id *device);
// Writes or reads a placement, or that there is none (device NULL). Reading replaces *solution.
void tfc_archive_solution(struct tfc_archive *archive, const struct tfc_problem *problem,
                          struct tfc_solution *solution);
void tfc_archive_elite(struct tfc_archive *archive, const struct tfc_problem *problem, struct tfc_elite *elite);
// Writes or reads a text, or NULL. Reading allocates *text with malloc.
void tfc_archive_text(struct tfc_archive *archive, char **text);

#endif
