"""Runs the cases of cases.py in TensorFlow's own servers, in this process and on its loopback, and keeps in golden/NAME/
the graph and the script of every task, what is fed, and what came out ("expected" in the scripts).

    .venv/bin/python tests/cluster/generate.py [NAME...]

Which version of TensorFlow wrote them stands in golden/README.md.
"""

import json
import os
import shutil
import socket
import sys
import threading

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import numpy as np
import tensorflow as tf

import cases

v1 = tf.compat.v1
LEADER = "/job:worker/replica:0/task:0"  # manages the groups of collective operations
HERE = os.path.dirname(os.path.abspath(__file__))


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def start_servers(sizes):
    ports = iter(free_ports(sum(sizes.values())))
    spec = {job: ["127.0.0.1:%d" % next(ports) for _ in range(count)] for job, count in sizes.items()}
    config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=4)
    config.experimental.collective_group_leader = LEADER
    return {(job, task): v1.train.Server(spec, job_name=job, task_index=task, config=config)
            for job, count in sizes.items() for task in range(count)}


def values_of(result):
    result = np.asarray(result)
    if result.dtype.kind in "OS":
        return [[item.decode() for item in result.ravel()], list(result.shape), "string"]
    return [[float(v) for v in result.ravel()], list(result.shape), result.dtype.name]


class Task(threading.Thread):
    """A task's session running its script."""

    def __init__(self, name, meta, entries, target, barriers, lock):
        super().__init__()
        self.where, self.meta, self.entries, self.target = name, meta, entries, target
        self.barriers, self.lock, self.error = barriers, lock, None

    def run_one(self, session, entry):
        targets = [session.graph.get_operation_by_name(t.split(":")[0]) for t in entry["targets"]]
        got = session.run([entry["fetches"], targets], entry["feeds"])[0]
        entry["got"] = [values_of(g) for g in got]

    def run_all(self, session):
        for entry in self.entries:
            if "barrier" in entry:
                with self.lock:
                    meeting = self.barriers[entry["barrier"]]
                meeting.wait(60)
            elif "together" in entry:
                threads = [threading.Thread(target=self.run_one, args=(session, e)) for e in entry["together"]]
                for t in threads:
                    t.start()
                for t in threads:
                    t.join()
            else:
                self.run_one(session, entry)

    def run(self):
        try:
            graph = tf.Graph()
            with graph.as_default():
                v1.train.import_meta_graph(self.meta)
                config = v1.ConfigProto(intra_op_parallelism_threads=1)
                config.graph_options.rewrite_options.disable_meta_optimizer = True
                config.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0
                config.experimental.collective_group_leader = LEADER
                session = v1.Session(self.target, config=config)
                coordinator = tf.train.Coordinator(clean_stop_exception_types=(Exception,))
                threads = []
                # they start after the initialisers, because before that they would fail
                if graph.get_collection(v1.GraphKeys.QUEUE_RUNNERS):
                    first = next(i for i, e in enumerate(self.entries) if e.get("fetches"))
                    whole = self.entries
                    self.entries = whole[:first]
                    self.run_all(session)
                    self.entries = whole[first:]
                    threads = v1.train.start_queue_runners(session, coordinator)
                self.run_all(session)
                self.done = session, coordinator, threads
        except Exception as error:  # the main thread prints the error
            self.error = error


def write_task(folder, where, entries):
    """The script, with feeds as files beside it."""
    job, task = where
    feeds = {}

    def file_of(value):
        array = np.asarray(value)
        key = (array.tobytes(), array.shape, array.dtype.str)
        if key not in feeds:
            feeds[key] = "%s.%d.feed%d.npy" % (job, task, len(feeds))
            np.save(os.path.join(folder, feeds[key]), array)
        return feeds[key]

    def of(entry):
        if "barrier" in entry:
            return {"barrier": entry["barrier"]}
        if "together" in entry:
            return {"together": [of(e) for e in entry["together"]]}
        out = {}
        if entry["feeds"]:
            out["feeds"] = {k: file_of(v) for k, v in entry["feeds"].items()}
        if entry["fetches"]:
            out["fetches"] = entry["fetches"]
        if entry["targets"]:
            out["targets"] = [t.split(":")[0] for t in entry["targets"]]
        if entry["check"] and entry["fetches"]:
            out["expected"] = entry["got"]
        return out

    with open(os.path.join(folder, "script.%s.%d.json" % where), "w") as f:
        f.write('{"runs": [\n%s\n]}\n' % ",\n".join(json.dumps(of(e)) for e in entries))


def generate(name):
    sizes, build = cases.CASES[name]
    folder = os.path.join(HERE, "golden", name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    spec = tf.train.ClusterSpec({job: ["localhost:%d" % (i + 1) for i in range(n)] for job, n in sizes.items()})
    built = {}
    for job, count in sizes.items():
        for task in range(count):
            if job == "ps":
                continue
            graph = tf.Graph()
            with graph.as_default():
                entries = build(job, task, spec)
                if entries is None:
                    continue
                meta = os.path.join(folder, "graph.%s.%d.meta" % (job, task))
                v1.train.export_meta_graph(meta, clear_extraneous_savers=True, strip_default_attrs=True)
                built[job, task] = entries, meta
    servers = start_servers(sizes)
    names = {e["barrier"] for entries, _ in built.values() for e in entries if "barrier" in e}
    barriers = {b: threading.Barrier(len(built)) for b in names}
    lock = threading.Lock()
    tasks = [Task(where, meta, entries, servers[where].target, barriers, lock) for where, (entries, meta) in built.items()]
    for t in tasks:
        t.start()
    for t in tasks:
        t.join()
    for t in tasks:
        if t.error:
            raise RuntimeError("%s %s: %s" % (name, t.where, t.error))
    for t in tasks:
        write_task(folder, t.where, built[t.where][0])
    with open(os.path.join(folder, "cluster"), "w") as f:
        f.write(",".join("%s=%d" % item for item in sizes.items()) + "\n")
    print("%s: %d tasks, %d with scripts" % (name, sum(sizes.values()), len(built)), flush=True)


def main():
    failed = []
    if len(sys.argv) > 2 or len(sys.argv) == 1:  # each case gets a process of its own, because servers do not end
        for name in sys.argv[1:] or cases.CASES:
            if os.spawnv(os.P_WAIT, sys.executable, [sys.executable, __file__, name]) != 0:
                failed.append(name)
        sys.exit("failed: " + " ".join(failed) if failed else 0)
    generate(sys.argv[1])
    os._exit(0)  # ends the process, because servers and queue runners do not end


if __name__ == "__main__":
    main()
