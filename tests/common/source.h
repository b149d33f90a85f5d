// Where the sources and the examples are: a test may run on another machine than the one that it was built on.
#ifndef TFC_TESTS_COMMON_SOURCE_H
#define TFC_TESTS_COMMON_SOURCE_H

// Returns the value of TFC_SOURCE_ROOT in the environment; if it is not set, the folder from which the test was built.
const char *test_source_dir(void);

#endif
