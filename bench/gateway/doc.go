// Command gateway measures what `lathe serve` costs between a client and a model server, beside
// httputil.ReverseProxy and a lean proxy that reads every event. Each of them is a process of its own on
// one core; the model server and the clients are on the other. All are measured in alternation, and each figure is
// the median of its rounds. The request log and the metrics of lathe are on.
//
//	go run ./gateway                            the tables
//	go run ./gateway -only 32 -against ../old   some of them, with another binary of lathe beside this one
//	go run ./gateway -lathe new -against old    two binaries beside each other, without a build
//	go run ./gateway -ready                     only the time until lathe listens, without tools and with 100 of each kind
//	go run ./gateway -long -against ../old      histories of 1 MB, runs on SQLite at 64 connections, disk and memory of 100 turns
//	go run ./gateway -streams 1000 -for 10m     one load on lathe alone, and whether its memory stays flat
package main
