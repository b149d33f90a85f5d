// Tests which operands are in host memory on devices that have memory of their own. The attributes that decide must
// exist, the answer for a node depends on its attributes, and every op that takes an int32 variable has its operands
// there.
#include "tests/common/test.h"

#include <string.h>

#include "runtime/graph/import.h"
#include "runtime/ops/host_memory.h"

static void rows(void **state) {
  (void)state;
  size_t n = 0;
  size_t held = 0;
  const struct tfc_op_def *const *ops = tfc_op_list(&n);
  for (size_t i = 0; i < n; i++) {
    const struct tfc_op_def *def = ops[i];
    if (!def->host.attr != !def->host.types)
      fail_msg("%s has an attribute without types, or types without it", def->name);
    if (!def->host.attr) continue;
    const struct tfc_op_signature *s = tfc_op_signature(def);
    bool found = false;
    for (uint32_t k = 0; k < s->attr_count; k++)
      found |= tfc_str_is(s->attrs[k].name, def->host.attr) && s->attrs[k].kind == TFC_ATTR_TYPE;
    if (!found) fail_msg("%s has no type %s", def->name, def->host.attr);
    held++;
  }
  assert_true(held > 200);
}

// int32 variables are in host memory. So each op that takes a variable and allows int32 must have a row in the table;
// otherwise a kernel of the device would get host memory.
static void variables(void **state) {
  (void)state;
  size_t n = 0;
  const struct tfc_op_def *const *ops = tfc_op_list(&n);
  const uint32_t moves =
      TFC_OP_SWITCH | TFC_OP_MERGE | TFC_OP_ENTER | TFC_OP_EXIT | TFC_OP_NEXT_ITERATION | TFC_OP_HOST;
  for (size_t i = 0; i < n; i++) {
    const struct tfc_op_def *def = ops[i];
    const struct tfc_op_signature *s = tfc_op_signature(def);
    if (!def->kernel || def->flags & moves || (def->types && !(def->types & TFC_TYPE_BIT(TFC_INT32)))) continue;
    bool takes = false;
    for (uint32_t k = 0; k < s->input_count; k++) takes |= s->inputs[k].is_ref && s->inputs[k].type_attr.size;
    bool typed = false;
    for (uint32_t k = 0; k < s->attr_count; k++) typed |= s->attrs[k].kind == TFC_ATTR_TYPE;
    takes |= typed && def->flags & TFC_OP_UPDATE && s->input_count && s->inputs[0].type == TFC_RESOURCE;
    if (takes && !def->host.types) fail_msg("%s takes a variable", def->name);
  }
}

static const char text[] =
    "node { name: 'i' op: 'Placeholder' attr { key: 'dtype' value { type: DT_INT32 } } }"
    "node { name: 'l' op: 'Placeholder' attr { key: 'dtype' value { type: DT_INT64 } } }"
    "node { name: 'f' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }"
    "node { name: 'add' op: 'AddV2' input: 'i' input: 'i' attr { key: 'T' value { type: DT_INT32 } } }"
    "node { name: 'long' op: 'AddV2' input: 'l' input: 'l' attr { key: 'T' value { type: DT_INT64 } } }"
    "node { name: 'less' op: 'Less' input: 'i' input: 'i' attr { key: 'T' value { type: DT_INT32 } } }"
    "node { name: 'both' op: 'LogicalAnd' input: 'less' input: 'less' }"
    "node { name: 'cast' op: 'Cast' input: 'i' attr { key: 'SrcT' value { type: DT_INT32 } }"
    "  attr { key: 'DstT' value { type: DT_FLOAT } } }"
    "node { name: 'tile' op: 'Tile' input: 'i' input: 'i' attr { key: 'T' value { type: DT_INT32 } }"
    "  attr { key: 'Tmultiples' value { type: DT_INT32 } } }"
    "node { name: 'range' op: 'Range' input: 'i' input: 'i' input: 'i' }" // the default of its type attribute is int32
    "node { name: 'sum' op: 'Sum' input: 'f' input: 'i' attr { key: 'T' value { type: DT_FLOAT } }"
    "  attr { key: 'Tidx' value { type: DT_INT32 } } }"
    "node { name: 'pack' op: 'Pack' input: 'i' input: 'i' attr { key: 'T' value { type: DT_INT32 } }"
    "  attr { key: 'N' value { i: 2 } } }"
    "node { name: 'shape' op: 'Shape' input: 'f' attr { key: 'T' value { type: DT_FLOAT } } }"
    "node { name: 'args' op: 'BroadcastGradientArgs' input: 'l' input: 'l' attr { key: 'T' value { type: DT_INT64 } } "
    "}";

static void nodes(void **state) {
  (void)state;
  static const struct {
    const char *name;
    bool all;
    uint32_t inputs, outputs; // bits of the operands in host memory, if not all are
  } want[] = {{"add", true, 0, 0},   {"long", false, 0, 0},  {"less", true, 0, 0},  {"both", false, 0, 0},
              {"cast", false, 0, 0}, {"tile", false, 2, 0},  {"range", true, 0, 0}, {"sum", false, 2, 0},
              {"pack", true, 0, 0},  {"shape", false, 0, 1}, {"args", true, 0, 0}};
  struct tfc_graph *g = NULL;
  assert_ok(tfc_graph_parse(tfc_str_from(text), "host memory", NULL, &g));
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    const struct tfc_node *n = &g->nodes[tfc_graph_find(g, tfc_str_from(want[i].name))];
    struct tfc_host_memory m = tfc_host_memory(g, n, n->def);
    if (m.all != want[i].all) fail_msg("%s: %s", want[i].name, m.all ? "on the host" : "on the device");
    for (uint32_t k = 0; k < 40; k++) { // also operands beyond the number of bits
      if (k < n->input_count && tfc_host_bit(m.inputs, k) != (m.all || want[i].inputs >> k & 1))
        fail_msg("%s: input %u", want[i].name, k);
      if (k < n->output_count && tfc_host_bit(m.outputs, k) != (m.all || want[i].outputs >> k & 1))
        fail_msg("%s: output %u", want[i].name, k);
    }
    assert_int_equal(tfc_host_bit(UINT32_MAX, 40), true);
    assert_int_equal(tfc_host_bit(3, 40), false);
  }
  tfc_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows), cmocka_unit_test(variables), cmocka_unit_test(nodes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
