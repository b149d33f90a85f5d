// Actors: what a learned policy decides about. Colocation units are clustered along their heaviest edges until few are
// left, because credit for a measured step time has to be shared among all decisions of a sample; the network still
// sees every unit, its features and its neighbours.
#ifndef TFC_RL_ACTORS_H
#define TFC_RL_ACTORS_H

#include "placer/model/problem.h"

// What the problem itself does not know about its nodes; every array may be NULL.
struct tfc_node_facts {
  const uint32_t *op_type; // [node] any small numbers, equal for equal op types
  const double *elements;  // [node] elements of its largest output
};

struct tfc_actors {
  struct tfc_arena arena;
  uint32_t unit_count, actor_count, device_count, feature_count;
  const uint32_t *actor;  // [unit]
  const float *features;  // [unit_count, feature_count]
  const float *incoming;  // [unit_count, unit_count] weights of a unit's producers, rows sum to 1 (or are 0)
  const float *outgoing;  // [unit_count, unit_count] the same of its consumers
  const float *pool;      // [actor_count, unit_count] shares by time, rows sum to 1
  const float *forbidden; // [actor_count, device_count] 0 where allowed, a large negative number where not
};
// At most `max_actors` actors (at least 1), unless constraints keep more apart. Deterministic. Dense matrices: meant
// for up to a few thousand units.
TFC_MUST_USE tfc_status tfc_actors_create(const struct tfc_problem *problem, const struct tfc_node_facts *facts,
                                          uint32_t max_actors, struct tfc_actors **out);
void tfc_actors_free(struct tfc_actors *actors); // NULL is fine
// Writes choice[actor] to every unit.
void tfc_actors_apply(const struct tfc_actors *actors, const tfc_device_id *choice, struct tfc_solution *solution);

#endif
