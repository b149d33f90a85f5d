# Runs the tests that every transport must pass with 1,000 seeds of random delays (tasks are threads of one process).
#
#   seeds_endless_test.sh BUILD_FOLDER
exec "$1/tests/cluster_transport_thread_test" seeds 1000
