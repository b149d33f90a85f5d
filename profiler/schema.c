// Tables are narrow and clustered by (placement, step, position), so that a run only appends to them. Views are for
// readers. Intervals are whole nanoseconds in the tables and microseconds in the views.
//
// `placement` has one row for each placement of a run that was measured or compared: candidates, baselines, the answer.
// Its key is unique in the database; views show (run_id, placement_id).

#include "profiler/schema.h"

const char tfc_schema_tables[] =
    "CREATE TABLE run ("
    " run_id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " state TEXT NOT NULL CHECK (state IN ('running', 'done', 'interrupted', 'failed')),"
    " program TEXT NOT NULL, command TEXT NOT NULL, version TEXT NOT NULL,"
    " started_unix_s REAL NOT NULL, ended_unix_s REAL,"
    " graph TEXT NOT NULL, graph_sha256 TEXT, graph_nodes INTEGER NOT NULL,"
    " objective TEXT NOT NULL, algorithms TEXT, seed INTEGER NOT NULL, label TEXT NOT NULL,"
    " host TEXT, cpu_model TEXT, blas_core TEXT,"
    " exit_code INTEGER, algorithm TEXT, best_placement_id INTEGER,"
    " speedup REAL, speedup_low REAL, speedup_high REAL,"
    " bound_us REAL, bound_name TEXT, trace_overhead REAL,"
    " tau REAL, tau_placements INTEGER, answer TEXT, message TEXT) STRICT;"

    "CREATE TABLE state (run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, name TEXT NOT NULL, value BLOB,"
    " PRIMARY KEY (run_id, name)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE device ("
    " run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, device_id INTEGER NOT NULL,"
    " name TEXT NOT NULL, kind TEXT NOT NULL, model TEXT, tensorflow TEXT, label TEXT NOT NULL,"
    " cores INTEGER, memory_bytes INTEGER, dispatch_us REAL, slowdown TEXT, memory_space INTEGER, math TEXT,"
    " PRIMARY KEY (run_id, device_id)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE link ("
    " run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, source INTEGER NOT NULL, target INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL, time_us REAL NOT NULL, samples INTEGER NOT NULL,"
    " PRIMARY KEY (run_id, source, target, bytes)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE node ("
    " run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, node_id INTEGER NOT NULL,"
    " name TEXT NOT NULL, op TEXT NOT NULL, unit_id INTEGER, flops REAL, bytes_touched REAL,"
    " memory_bytes INTEGER, output_bytes INTEGER,"
    " PRIMARY KEY (run_id, node_id)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE cost ("
    " run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, node_id INTEGER NOT NULL, kind TEXT NOT NULL,"
    " median_us REAL NOT NULL, q1_us REAL NOT NULL, q3_us REAL NOT NULL, fastest_us REAL NOT NULL,"
    " samples INTEGER NOT NULL,"
    " PRIMARY KEY (run_id, node_id, kind)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE edge ("
    " run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, edge_id INTEGER NOT NULL,"
    " producer INTEGER NOT NULL, output INTEGER NOT NULL, consumer INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    " PRIMARY KEY (run_id, edge_id)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE placement ("
    " placement INTEGER PRIMARY KEY, run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,"
    " placement_id INTEGER NOT NULL, role TEXT NOT NULL, name TEXT NOT NULL, algorithm TEXT, episode INTEGER,"
    " digest INTEGER, state TEXT NOT NULL, label TEXT NOT NULL,"
    " simulated_us REAL, median_us REAL, q1_us REAL, q3_us REAL, steps INTEGER NOT NULL,"
    " ratio REAL, reward REAL, cost_s REAL, at_s REAL, transfers INTEGER, transfer_bytes INTEGER, message TEXT,"
    " final_median_us REAL, final_q1_us REAL, final_q3_us REAL, final_steps INTEGER,"
    " CHECK (reward IS NULL OR (reward = reward AND median_us IS NOT NULL)),"
    " UNIQUE (run_id, placement_id)) STRICT;"

    "CREATE TABLE assignment ("
    " placement INTEGER NOT NULL REFERENCES placement ON DELETE CASCADE, unit_id INTEGER NOT NULL,"
    " device_id INTEGER NOT NULL, PRIMARY KEY (placement, unit_id)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE step ("
    " placement INTEGER NOT NULL REFERENCES placement ON DELETE CASCADE, step INTEGER NOT NULL,"
    " phase TEXT NOT NULL, block INTEGER NOT NULL, traced INTEGER NOT NULL, start_ns INTEGER NOT NULL,"
    " duration_ns INTEGER NOT NULL CHECK (duration_ns > 0),"
    " PRIMARY KEY (placement, step)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE busy ("
    " placement INTEGER NOT NULL REFERENCES placement ON DELETE CASCADE, step INTEGER NOT NULL,"
    " device_id INTEGER NOT NULL, operations_ns INTEGER NOT NULL, busy_ns INTEGER NOT NULL,"
    " operations INTEGER NOT NULL, launch_ns INTEGER, transfer_ns INTEGER, dependency_ns INTEGER, end_ns INTEGER,"
    " launch_gap_ns INTEGER,"
    " PRIMARY KEY (placement, step, device_id)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE op ("
    " placement INTEGER NOT NULL REFERENCES placement ON DELETE CASCADE, step INTEGER NOT NULL,"
    " position INTEGER NOT NULL, node_id INTEGER NOT NULL, device_id INTEGER NOT NULL,"
    " start_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL, dispatch_ns INTEGER, launched_ns INTEGER,"
    " PRIMARY KEY (placement, step, position)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE op_total ("
    " placement INTEGER NOT NULL REFERENCES placement ON DELETE CASCADE, node_id INTEGER NOT NULL,"
    " device_id INTEGER NOT NULL, samples INTEGER NOT NULL, median_ns INTEGER NOT NULL, fastest_ns INTEGER NOT NULL,"
    " total_ns INTEGER NOT NULL,"
    " PRIMARY KEY (placement, node_id)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE transfer ("
    " placement INTEGER NOT NULL REFERENCES placement ON DELETE CASCADE, step INTEGER NOT NULL,"
    " position INTEGER NOT NULL, node_id INTEGER NOT NULL, output INTEGER NOT NULL, source INTEGER NOT NULL,"
    " target INTEGER NOT NULL, bytes INTEGER NOT NULL, start_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL,"
    " PRIMARY KEY (placement, step, position)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE memory ("
    " placement INTEGER NOT NULL REFERENCES placement ON DELETE CASCADE, device_id INTEGER NOT NULL,"
    " peak_bytes INTEGER NOT NULL, complete INTEGER, PRIMARY KEY (placement, device_id)) STRICT, WITHOUT ROWID;";

const char tfc_schema_upgrade[] = "ALTER TABLE busy ADD COLUMN launch_ns INTEGER;"
                                  "ALTER TABLE busy ADD COLUMN transfer_ns INTEGER;"
                                  "ALTER TABLE busy ADD COLUMN dependency_ns INTEGER;"
                                  "ALTER TABLE busy ADD COLUMN end_ns INTEGER;"
                                  "ALTER TABLE busy ADD COLUMN launch_gap_ns INTEGER;";

const char tfc_schema_upgrade_2[] = "ALTER TABLE op ADD COLUMN launched_ns INTEGER;";

// Devices with the same memory space pass tensors without a copy.
const char tfc_schema_upgrade_4[] = "ALTER TABLE device ADD COLUMN memory_space INTEGER;";

// The type in which a device computes products of float32 tensors.
const char tfc_schema_upgrade_5[] = "ALTER TABLE device ADD COLUMN math TEXT;";

// Whether a peak is all that was held (1), or only the variables (0).
const char tfc_schema_upgrade_11[] = "ALTER TABLE memory ADD COLUMN complete INTEGER;";

// Work of a GPU. node_id NULL: it belongs to no node, and `name` describes it; transfer NULL: it belongs to no
// transfer.
const char tfc_schema_added[] =
    "CREATE TABLE IF NOT EXISTS work ("
    " placement INTEGER NOT NULL REFERENCES placement ON DELETE CASCADE, step INTEGER NOT NULL,"
    " position INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, device_id INTEGER, node_id INTEGER,"
    " context INTEGER NOT NULL, stream INTEGER NOT NULL, start_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL,"
    " grid TEXT, block TEXT, registers INTEGER, shared_bytes INTEGER, bytes INTEGER NOT NULL, direction TEXT,"
    " transfer INTEGER, segment INTEGER,"
    " PRIMARY KEY (placement, step, position)) STRICT, WITHOUT ROWID;"
    // What the host did with a GPU besides launching; kind is synchronize, allocate or release.
    "CREATE TABLE IF NOT EXISTS gpu_call ("
    " placement INTEGER NOT NULL REFERENCES placement ON DELETE CASCADE, step INTEGER NOT NULL,"
    " position INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, context INTEGER NOT NULL, stream INTEGER,"
    " start_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL, bytes INTEGER,"
    " PRIMARY KEY (placement, step, position)) STRICT, WITHOUT ROWID;"
    // Drivers' measurements for choosing algorithms; device: the model for which they are valid.
    "CREATE TABLE IF NOT EXISTS tuning (device TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,"
    " PRIMARY KEY (device, key)) STRICT, WITHOUT ROWID;"
    // The predicted step time of the placement before it was measured: by the simulator with the costs of the profile
    // (or of the machine file), and by the learned model, with the standard deviation of its logarithm.
    "CREATE TABLE IF NOT EXISTS prediction ("
    " placement INTEGER PRIMARY KEY REFERENCES placement ON DELETE CASCADE, prior_us REAL, learned_us REAL,"
    " learned_sd REAL) STRICT;"
    // For each algorithm of a run: how many of its placements were measured, and how many of them were faster than the
    // best placement before, measured in turns with it. learned: 1 if the algorithm is a policy.
    "CREATE TABLE IF NOT EXISTS proposer ("
    " run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, name TEXT NOT NULL, learned INTEGER NOT NULL,"
    " measured INTEGER NOT NULL, won INTEGER NOT NULL, best_simulated_us REAL, best_measured_us REAL,"
    " PRIMARY KEY (run_id, name)) STRICT, WITHOUT ROWID;"
    // What a learned policy contributed to the search that proposed the placement, even if another method found it: its
    // own samples, and the turns of local search in which it proposed the moves. Gains: the share by which all turns
    // together made the best placement shorter.
    "CREATE TABLE IF NOT EXISTS policy_search ("
    " placement INTEGER PRIMARY KEY REFERENCES placement ON DELETE CASCADE, samples INTEGER NOT NULL, entropy REAL,"
    " invalid_share REAL, move_turns INTEGER NOT NULL, move_wins INTEGER NOT NULL, move_gain REAL, move_s REAL,"
    " other_gain REAL, other_s REAL) STRICT;"
    // What the throughput objective compares: the largest load of a device, or the time from the end of one step to
    // that of the next, measured `samples` times with `at_once` steps under way; samples 0: it is computed from the
    // costs of operations. `device_load`: the load of each device, computed.
    "CREATE TABLE IF NOT EXISTS load ("
    " placement INTEGER PRIMARY KEY REFERENCES placement ON DELETE CASCADE, load_us REAL NOT NULL,"
    " samples INTEGER NOT NULL, at_once INTEGER NOT NULL) STRICT;"
    "CREATE TABLE IF NOT EXISTS device_load ("
    " placement INTEGER NOT NULL REFERENCES placement ON DELETE CASCADE, device_id INTEGER NOT NULL,"
    " load_us REAL NOT NULL, PRIMARY KEY (placement, device_id)) STRICT, WITHOUT ROWID;"
    // What became of moving single units of the answer: how many were tried, in a simulated step, and those that win.
    // value_us: the simulated objective without a move; node_id: the operation of the unit that takes longest.
    "CREATE TABLE IF NOT EXISTS moves_tried ("
    " placement INTEGER PRIMARY KEY REFERENCES placement ON DELETE CASCADE, units INTEGER NOT NULL,"
    " value_us REAL NOT NULL) STRICT;"
    "CREATE TABLE IF NOT EXISTS single_move ("
    " placement INTEGER NOT NULL REFERENCES placement ON DELETE CASCADE, unit_id INTEGER NOT NULL,"
    " node_id INTEGER NOT NULL, operations INTEGER NOT NULL, source INTEGER NOT NULL, target INTEGER NOT NULL,"
    " won_us REAL NOT NULL, PRIMARY KEY (placement, unit_id)) STRICT, WITHOUT ROWID;"
    // What the program warned of, each warning once.
    "CREATE TABLE IF NOT EXISTS warning ("
    " run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, number INTEGER NOT NULL, text TEXT NOT NULL,"
    " PRIMARY KEY (run_id, number), UNIQUE (run_id, text)) STRICT, WITHOUT ROWID;";

// The replay of a captured segment to which the work belongs: the number of its launch in the process.
const char tfc_schema_upgrade_6[] = "ALTER TABLE work ADD COLUMN segment INTEGER;";

// How a tensor is moved from device s to device d.
#define HOW                                                                                                            \
  "CASE WHEN COALESCE(s.memory_space, d.memory_space) IS NULL THEN NULL WHEN s.memory_space = d.memory_space THEN"     \
  " 'handed over' WHEN s.label = 'virtual' AND d.label = 'virtual' THEN 'copy on one GPU' ELSE 'copy' END AS how"
// What a learned policy did in the search that proposed a placement.
#define POLICY                                                                                                         \
  "q.samples AS policy_samples, q.entropy AS policy_entropy, q.invalid_share AS policy_invalid_share, q.move_turns AS" \
  " policy_move_turns, q.move_wins AS policy_move_wins, q.move_gain AS policy_move_gain, q.move_s AS policy_move_s,"   \
  " q.other_gain AS other_move_gain, q.other_s AS other_move_s"
#define VIEW(name, text) "DROP VIEW IF EXISTS " name ";CREATE VIEW " name " AS " text ";"

// clang-format off
const char tfc_schema_views[] =
    VIEW("v_run",
         "SELECT r.run_id, r.state, r.program, r.command, r.version, r.started_unix_s, r.ended_unix_s,"
         " r.ended_unix_s - r.started_unix_s AS wall_s, r.graph, r.graph_sha256, r.graph_nodes, r.objective,"
         " r.algorithms, r.seed, r.label, r.host, r.cpu_model, r.blas_core, r.exit_code, r.algorithm,"
         " r.best_placement_id AS placement_id, COALESCE(b.final_median_us, b.median_us) AS step_median_us,"
         " COALESCE(b.final_q1_us, b.q1_us) AS step_q1_us, COALESCE(b.final_q3_us, b.q3_us) AS step_q3_us,"
         " COALESCE(b.final_steps, b.steps) AS step_count, b.simulated_us, (SELECT"
         " COALESCE(p.final_median_us, p.median_us) FROM placement p WHERE p.run_id = r.run_id AND p.name ="
         " 'whole') AS whole_us, (SELECT MIN(COALESCE(p.final_median_us, p.median_us)) FROM placement p WHERE"
         " p.run_id = r.run_id AND p.name LIKE 'single:%' AND p.state = 'ok') AS best_single_us, (SELECT"
         " COALESCE(p.final_median_us, p.median_us) FROM placement p WHERE p.run_id = r.run_id AND p.name ="
         " 'expert') AS expert_us, r.speedup, r.speedup_low, r.speedup_high, r.bound_us, r.bound_name,"
         " r.trace_overhead, r.tau, r.tau_placements, (SELECT COUNT(*) FROM placement p WHERE p.run_id ="
         " r.run_id AND p.episode IS NOT NULL) AS episodes, r.message, (SELECT CAST(s.value AS TEXT) FROM state s"
         " WHERE s.run_id = r.run_id AND s.name = 'measured_with') AS measured_with, (SELECT CAST(s.value AS TEXT) FROM"
         " state s WHERE s.run_id = r.run_id AND s.name = 'learning') AS learning, (SELECT CAST(s.value AS TEXT) FROM state s WHERE"
         " s.run_id = r.run_id AND s.name = 'ending') AS ending, COALESCE(l.load_us, CASE WHEN r.objective = 'throughput' AND json_valid(r.answer)"
         " THEN json_extract(r.answer, '$.value_us') END) AS load_us, l.samples AS load_samples, l.at_once AS"
         " load_at_once, (SELECT MIN(o.load_us) FROM placement p JOIN load o ON o.placement = p.placement WHERE"
         " p.run_id = r.run_id AND p.name LIKE 'single:%' AND p.state = 'ok' AND (l.samples = 0 OR o.samples > 0)) AS"
         " best_single_load_us, t.units AS moves_tried FROM run r LEFT JOIN placement b ON"
         " b.run_id = r.run_id AND b.placement_id = r.best_placement_id LEFT JOIN load l ON l.placement = b.placement"
         " LEFT JOIN moves_tried t ON t.placement = b.placement")
    VIEW("v_load",
         "SELECT p.run_id, p.placement_id, p.name AS placement, l.device_id, d.name AS device, l.load_us FROM"
         " device_load l JOIN placement p ON p.placement = l.placement LEFT JOIN device d ON d.run_id = p.run_id AND"
         " d.device_id = l.device_id")
    VIEW("v_move",
         "SELECT p.run_id, p.placement_id, p.name AS placement, t.value_us, m.unit_id, n.name AS node, m.operations,"
         " s.name AS source, d.name AS target, m.won_us FROM single_move m JOIN moves_tried t ON t.placement ="
         " m.placement JOIN placement p ON p.placement = m.placement LEFT JOIN node n ON n.run_id = p.run_id AND"
         " n.node_id = m.node_id LEFT JOIN device s ON s.run_id = p.run_id AND s.device_id = m.source LEFT JOIN"
         " device d ON d.run_id = p.run_id AND d.device_id = m.target")
    VIEW("v_warning", "SELECT run_id, number, text FROM warning")
    VIEW("v_device",
         "SELECT run_id, device_id, name, kind, model, tensorflow, label, cores, memory_bytes AS"
         " memory_limit_bytes, dispatch_us, slowdown, memory_space, math FROM device")
    VIEW("v_link",
         "SELECT l.run_id, s.name AS source, d.name AS target, l.bytes, l.time_us, l.samples, " HOW " FROM link l JOIN"
         " device s ON s.run_id = l.run_id AND s.device_id = l.source JOIN device d ON d.run_id = l.run_id"
         " AND d.device_id = l.target")
    // What has no shape until it runs was stored with 0 bytes.
    VIEW("v_node",
         "SELECT n.run_id, n.node_id, n.name, n.op, n.unit_id, n.flops, n.bytes_touched, n.memory_bytes,"
         " CASE WHEN n.output_bytes = 0 AND n.bytes_touched IS NULL AND n.op <> '' THEN NULL ELSE n.output_bytes END AS"
         " output_bytes, (SELECT MIN(c.median_us) FROM cost c WHERE c.run_id = n.run_id AND c.node_id ="
         " n.node_id) AS time_us FROM node n")
    VIEW("v_cost",
         "SELECT c.run_id, c.node_id, n.name, n.op, c.kind, c.median_us, c.q1_us, c.q3_us, c.fastest_us,"
         " c.samples FROM cost c JOIN node n ON n.run_id = c.run_id AND n.node_id = c.node_id")
    VIEW("v_edge",
         "SELECT e.run_id, e.edge_id, e.producer AS producer_id, p.name AS producer, e.output, e.consumer AS"
         " consumer_id, c.name AS consumer, CASE WHEN e.bytes = 0 AND e.output >= 0 AND p.output_bytes = 0 AND"
         " p.bytes_touched IS NULL AND p.op <> '' THEN NULL ELSE e.bytes END AS bytes FROM edge e JOIN node p ON p.run_id = e.run_id AND"
         " p.node_id = e.producer JOIN node c ON c.run_id = e.run_id AND c.node_id = e.consumer")
    VIEW("v_placement",
         "SELECT p.run_id, p.placement_id, p.role, p.name AS placement, n.node_id, n.name AS node, n.op,"
         " n.unit_id, a.device_id, d.name AS device FROM placement p JOIN assignment a ON a.placement ="
         " p.placement JOIN node n ON n.run_id = p.run_id AND n.unit_id = a.unit_id LEFT JOIN device d ON"
         " d.run_id = p.run_id AND d.device_id = a.device_id")
    VIEW("v_step",
         "SELECT p.run_id, p.placement_id, p.name AS placement, s.step, s.phase, s.block, s.traced,"
         " s.start_ns * 1e-3 AS start_us, s.duration_ns * 1e-3 AS step_us FROM step s JOIN placement p ON"
         " p.placement = s.placement")
    VIEW("v_busy",
         "SELECT p.run_id, p.placement_id, p.name AS placement, b.step, b.device_id, d.name AS device,"
         " b.operations, b.operations_ns * 1e-3 AS operations_us, b.busy_ns * 1e-3 AS busy_us, s.duration_ns"
         " * 1e-3 AS step_us, b.launch_ns * 1e-3 AS idle_launch_us, b.transfer_ns * 1e-3 AS idle_transfer_us,"
         " b.dependency_ns * 1e-3 AS idle_dependency_us, b.end_ns * 1e-3 AS idle_end_us, b.launch_gap_ns * 1e-3 AS"
         " longest_launch_gap_us FROM busy b JOIN placement p ON p.placement = b.placement JOIN step s ON"
         " s.placement = b.placement AND s.step = b.step LEFT JOIN device d ON d.run_id = p.run_id AND"
         " d.device_id = b.device_id")
    VIEW("v_op",
         "SELECT p.run_id, p.placement_id, p.name AS placement, o.step, o.position, o.node_id, n.name AS"
         " node, n.op, o.device_id, d.name AS device, o.start_ns * 1e-3 AS start_us, o.duration_ns * 1e-3 AS"
         " duration_us, o.dispatch_ns * 1e-3 AS dispatch_us, o.launched_ns * 1e-3 AS launched_us, (o.start_ns -"
         " o.launched_ns) * 1e-3 AS launch_to_start_us FROM op o JOIN placement p ON p.placement ="
         " o.placement JOIN node n ON n.run_id = p.run_id AND n.node_id = o.node_id LEFT JOIN device d ON"
         " d.run_id = p.run_id AND d.device_id = o.device_id")
    VIEW("v_op_total",
         "SELECT p.run_id, p.placement_id, p.name AS placement, o.node_id, n.name AS node, n.op, o.device_id,"
         " d.name AS device, o.samples, o.median_ns * 1e-3 AS median_us, o.fastest_ns * 1e-3 AS fastest_us,"
         " o.total_ns * 1e-3 AS total_us FROM op_total o JOIN placement p ON p.placement = o.placement JOIN"
         " node n ON n.run_id = p.run_id AND n.node_id = o.node_id LEFT JOIN device d ON d.run_id = p.run_id"
         " AND d.device_id = o.device_id")
    VIEW("v_transfer",
         "SELECT p.run_id, p.placement_id, p.name AS placement, t.step, t.position, t.node_id, n.name AS"
         " node, t.output, t.source AS source_id, s.name AS source, t.target AS target_id, d.name AS target,"
         " t.bytes, t.start_ns * 1e-3 AS start_us, t.duration_ns * 1e-3 AS duration_us, " HOW " FROM transfer t JOIN"
         " placement p ON p.placement = t.placement JOIN node n ON n.run_id = p.run_id AND n.node_id ="
         " t.node_id LEFT JOIN device s ON s.run_id = p.run_id AND s.device_id = t.source LEFT JOIN device d"
         " ON d.run_id = p.run_id AND d.device_id = t.target")
    VIEW("v_kernel",
         "SELECT p.run_id, p.placement_id, p.name AS placement, w.step, w.position, w.name, w.device_id, d.name AS"
         " device, w.node_id, n.name AS node, n.op, w.context, w.stream, w.start_ns * 1e-3 AS start_us,"
         " w.duration_ns * 1e-3 AS duration_us, w.grid, w.block, w.registers, w.shared_bytes, w.segment FROM work w JOIN"
         " placement p ON p.placement = w.placement LEFT JOIN node n ON n.run_id = p.run_id AND n.node_id ="
         " w.node_id LEFT JOIN device d ON d.run_id = p.run_id AND d.device_id = w.device_id WHERE w.kind ="
         " 'kernel'")
    VIEW("v_copy",
         "SELECT p.run_id, p.placement_id, p.name AS placement, w.step, w.position, w.kind, w.direction, w.bytes,"
         " w.device_id, d.name AS device, w.node_id, n.name AS node, w.transfer, w.context, w.stream, w.start_ns *"
         " 1e-3 AS start_us, w.duration_ns * 1e-3 AS duration_us, w.segment FROM work w JOIN placement p ON p.placement ="
         " w.placement LEFT JOIN node n ON n.run_id = p.run_id AND n.node_id = w.node_id LEFT JOIN device d ON"
         " d.run_id = p.run_id AND d.device_id = w.device_id WHERE w.kind <> 'kernel'")
    VIEW("v_synchronization",
         "SELECT p.run_id, p.placement_id, p.name AS placement, c.step, c.position, c.name AS waited_for, c.context,"
         " c.stream, c.start_ns * 1e-3 AS start_us, c.duration_ns * 1e-3 AS duration_us FROM gpu_call c JOIN"
         " placement p ON p.placement = c.placement WHERE c.kind = 'synchronize'")
    VIEW("v_allocation",
         "SELECT p.run_id, p.placement_id, p.name AS placement, c.step, c.position, c.kind, c.name AS memory, c.context,"
         " c.stream, c.start_ns * 1e-3 AS start_us, c.bytes FROM gpu_call c JOIN placement p ON p.placement ="
         " c.placement WHERE c.kind <> 'synchronize'")
    // Each stream in each step: its work, and its idle time in between.
    VIEW("v_stream",
         "SELECT p.run_id, p.placement_id, p.name AS placement, g.step, g.context, g.stream, MAX(d.name) AS"
         " device, COUNT(*) AS works, SUM(g.kind = 'kernel') AS kernels, SUM(g.kind = 'copy') AS copies,"
         " SUM(g.bytes) AS bytes, SUM(g.duration_ns) * 1e-3 AS busy_us, MIN(g.start_ns) * 1e-3 AS first_us,"
         " MAX(g.start_ns + g.duration_ns) * 1e-3 AS last_us, SUM(g.gap_ns) * 1e-3 AS idle_us,"
         " MAX(g.gap_ns) * 1e-3 AS longest_gap_us, SUM(g.gap_ns > 10000) AS gaps_over_10_us FROM (SELECT w.*,"
         " MAX(w.start_ns - LAG(w.start_ns + w.duration_ns) OVER (PARTITION BY w.placement, w.step, w.context,"
         " w.stream ORDER BY w.start_ns, w.position), 0) AS gap_ns FROM work w) g JOIN placement p ON p.placement"
         " = g.placement LEFT JOIN device d ON d.run_id = p.run_id AND d.device_id = g.device_id GROUP BY"
         " g.placement, g.step, g.context, g.stream")
    // The nodes of a captured segment are a chain: each waits only for the one before it.
    VIEW("v_segment_gap",
         "SELECT p.run_id, p.placement_id, p.name AS placement, g.step, g.segment, g.place, d.name AS device, g.stream,"
         " b.name AS node_before, g.name_before, n.name AS node, g.name, g.gap_ns * 1e-3 AS gap_us FROM (SELECT w.*,"
         " ROW_NUMBER() OVER chain - 1 AS place, LAG(w.name) OVER chain AS name_before, LAG(w.node_id) OVER chain AS"
         " node_id_before, MAX(w.start_ns - LAG(w.start_ns + w.duration_ns) OVER chain, 0) AS gap_ns FROM work w WHERE"
         " w.segment IS NOT NULL WINDOW chain AS (PARTITION BY w.placement, w.step, w.segment ORDER BY w.start_ns,"
         " w.position)) g JOIN placement p ON p.placement = g.placement LEFT JOIN node b ON b.run_id = p.run_id AND"
         " b.node_id = g.node_id_before LEFT JOIN node n ON n.run_id = p.run_id AND n.node_id = g.node_id LEFT JOIN"
         " device d ON d.run_id = p.run_id AND d.device_id = g.device_id WHERE g.place > 0")
    VIEW("v_tuning", "SELECT device, key, value FROM tuning")
    VIEW("v_memory",
         "SELECT p.run_id, p.placement_id, p.name AS placement, m.device_id, d.name AS device, m.peak_bytes,"
         " d.memory_bytes AS limit_bytes, m.complete FROM memory m JOIN placement p ON p.placement = m.placement LEFT"
         " JOIN device d ON d.run_id = p.run_id AND d.device_id = m.device_id")
    VIEW("v_result",
         "SELECT run_id, placement_id, role, name AS placement, algorithm, episode, state, label,"
         " COALESCE(final_median_us, median_us) AS step_median_us, COALESCE(final_q1_us, q1_us) AS"
         " step_q1_us, COALESCE(final_q3_us, q3_us) AS step_q3_us, COALESCE(final_steps, steps) AS"
         " step_count, simulated_us, transfers, transfer_bytes, message, " POLICY ", l.load_us, l.samples AS"
         " load_samples, l.at_once AS load_at_once FROM placement LEFT JOIN policy_search q USING (placement) LEFT JOIN"
         " load l USING (placement)")
    VIEW("v_proposer",
         "SELECT run_id, name AS algorithm, learned, measured, won, best_simulated_us, best_measured_us FROM proposer")
    VIEW("v_episode",
         "SELECT run_id, episode, placement_id, role, name AS placement, algorithm, state, label, median_us"
         " AS step_median_us, q1_us AS step_q1_us, q3_us AS step_q3_us, steps AS step_count, simulated_us,"
         " ratio AS ratio_to_reference, reward, cost_s, at_s, transfers, transfer_bytes, message, (SELECT prior_us"
         " FROM prediction f WHERE f.placement = placement.placement) AS prior_us, (SELECT learned_us FROM prediction"
         " f WHERE f.placement = placement.placement) AS predicted_us, (SELECT learned_us / median_us - 1 FROM"
         " prediction f WHERE f.placement = placement.placement) AS prediction_error, (SELECT"
         " CAST(s.value AS TEXT) FROM state s WHERE s.run_id = placement.run_id AND s.name = 'measured_with') AS"
         " measured_with, MIN(CASE"
         " WHEN state = 'ok' THEN median_us END) OVER (PARTITION BY run_id ORDER BY episode) AS"
         " best_so_far_us, " POLICY " FROM placement LEFT JOIN policy_search q USING (placement) WHERE"
         " episode IS NOT NULL");
// clang-format on

const char tfc_schema_indexes[] = "CREATE INDEX IF NOT EXISTS op_by_node ON op (placement, node_id);"
                                  "CREATE INDEX IF NOT EXISTS node_by_unit ON node (run_id, unit_id);";
