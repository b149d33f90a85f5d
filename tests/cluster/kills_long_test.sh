# Five kills of kills_endless_test.sh.
#
#   kills_long_test.sh BUILD_FOLDER
exec bash tests/cluster/kills_endless_test.sh "$1" 5 7
