// Command cluster measures `lathe serve` processes ("nodes") that share one PostgreSQL database, and injects faults while
// they work. It builds lathe, starts a PostgreSQL server in a folder of its own, a model server with tools, and the nodes on
// addresses of 127.0.0.0/8; it stops all of them by their process ids. Linux only: CPU time and memory are read from /proc.
//
//	go run ./cluster -nodes 1,2,4,8                     throughput, latency, CPU, bytes and WAL of a run, connections
//	go run ./cluster -nodes 1,4 -statements             and how often a run executes each statement
//	go run ./cluster -waiting 100000 -active 10000 -watchers 1000 -nodes 8
//	                                                    CPU and memory at idle, time of a list, an approval and a failover
//	go run ./cluster -upgrade COMMIT -rows 100000 -nodes 4
//	                                                    nodes of an older version replaced one by one under load
//	go run ./cluster -days 30                           retention over simulated days: sizes, dead rows, removals a second
//	go run ./cluster -nodes 2 -bouncer 20               the first table through PgBouncer in transaction mode; so can the others
//	go run ./cluster -kill 5s -for 10m -nodes 8         one node killed every 5 s; the four zeros
//
// A run has three model calls. In the model "plain" the first two ask for three tool calls each: one reads, one is idempotent,
// one writes. In the model "asks" the last call of five needs an approval. Tools and model answer at once, so that the time of
// a run is the time of Lathe and of the database. Clients, model server and tools are in the process of this command: its CPU
// is not counted.
//
// CPU time per run does not depend on how many cores the nodes share, and hardly on other load of the machine: it is the
// figure to plan with. Runs a second and latency are those of this machine.
package main
