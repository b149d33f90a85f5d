// Compares delta evaluation with full evaluation, on graphs, machines and walks that the bytes choose.
#include "tests/placer/walks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t bytes[16] = {0};
  uint64_t seed;
  struct tfc_random r;
  memcpy(bytes, data, size < sizeof bytes ? size : sizeof bytes);
  memcpy(&seed, bytes, sizeof seed);
  tfc_random_init(&r, seed);
  uint32_t rich = bytes[8] | (uint32_t)(bytes[9] & 7) << 8;
  // a small graph has most of what can go wrong, and a large one takes a hundred times as long
  const uint32_t nodes = 2 + (bytes[13] % 8 ? bytes[10] % 16 : bytes[10]),
                 devices = (rich & RICH_KINDS ? 2 : 1) + bytes[11] % 8;
  const int steps = bytes[14] ? 1 + bytes[14] % 40 : 6; // a short walk is mostly as good as a long one
  const bool back = bytes[12] & 1, throughput = bytes[12] & 2;
  // Each kind of device allows only some of the operations, drawn at random. In a large graph, groups are so large that
  // hardly any kind allows all nodes of each group, and drawing graphs until that happens would take too long.
  if (nodes > 30 && rich & RICH_GROUPS) rich &= ~RICH_KINDS;
  if (back || rich & RICH_INBOX) rich &= ~RICH_LIVE;
  struct instance i =
      back ? there_and_back(&r, nodes, devices, rich)
           : random_instance(&r, nodes, devices, rich, throughput ? TFC_OBJECTIVE_THROUGHPUT : TFC_OBJECTIVE_STEP);
  const char *differs = walk(&r, &i, steps);
  if (differs) {
    fprintf(stderr, "%s\n", differs);
    __builtin_trap();
  }
  instance_free(&i);
  return 0;
}
