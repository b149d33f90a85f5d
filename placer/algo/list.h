// The algorithms of this folder: an X-macro of their structs' names, in the order in which --algorithm help lists them.
#ifndef TFC_PLACER_ALGO_LIST_H
#define TFC_PLACER_ALGO_LIST_H

#define TFC_ALGOS(X)                                                                                                   \
  X(single)                                                                                                            \
  X(random)                                                                                                            \
  X(robin)                                                                                                             \
  X(split)                                                                                                             \
  X(layout)                                                                                                            \
  X(pack)                                                                                                              \
  X(metis)                                                                                                             \
  X(scotch)                                                                                                            \
  X(heft)                                                                                                              \
  X(peft)                                                                                                              \
  X(dls)                                                                                                               \
  X(topo)                                                                                                              \
  X(etf)                                                                                                               \
  X(sct)                                                                                                               \
  X(dp)                                                                                                                \
  X(multilevel)                                                                                                        \
  X(anneal)                                                                                                            \
  X(lns)                                                                                                               \
  X(ilp)

#endif
