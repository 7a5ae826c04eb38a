// Command scale measures how cost grows with size: the length of a conversation, the number of tools, that of tools at
// start-up, that of open streams, the size of a tool's result, the number of keys, and that of stored runs. For each curve it
// prints what was measured at each size and the exponent b of cost ~ size^b, fitted by least squares to the logarithms over the two largest decades; where
// peers do the same work, they are measured in alternation.
//
//	go run ./scale                               every curve, as tables
//	go run ./scale -history -tools               some of them
//	go run ./scale -json                         every curve as JSON
//	go run ./scale -svg ../docs/images           the pictures, too
//	go run ./scale -large                        sizes that take longer: 9,900 streams
//	go run ./scale -runs -most-runs 100000       stored runs, fewer than a million
//	go run ./scale -check                        exits with 1 if a curve of Lathe grows faster than n log n
//
// Figures are CPU times, which the load of the machine changes less than wall times, and allocations, which are exact. It runs on
// Linux.
package main
