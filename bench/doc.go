// Command bench measures Lathe beside its peers: the agent loop, the assembly of streamed tool
// calls, and the decoding of chunks; and its tool runner beside the tool. All contenders of one table run in alternation in one process
// with GOMAXPROCS=1; each figure is the median of its rounds. Trust, in this order: allocations
// (exact), ratios within one table, CPU time.
//
// What it costs to keep runs is measured by the command in durable.
//
//	go run . -all           every table
//	go run . -loop -rounds 7
package main
