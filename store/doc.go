// Package store defines where runs are stored, and implements it in memory ([Memory]). Package store/sqlite stores
// runs in one file, package store/postgres in a database that several processes share, and package storetest has the
// tests that every implementation must pass.
//
// # Which interface is needed when
//
// [Store] is enough to execute, read and delete runs. Each other interface is optional: a program checks by a type assertion whether a
// store implements it, and disables the functions that need it if not.
//
//	interface      needed for                                           without it
//	Store          engine.Engine: append, read and delete one run       runs have no log: they are neither read nor resumed
//	RunIndex       listing runs and model calls; resuming the runs      a run is found by its id alone; package server
//	               of a process that stopped                            serves no /api/runs from the store
//	SignalStore    approvals, client results and cancel requests that   input of a parked run is lost when the process
//	               are stored before they are acknowledged              stops; package server requires it with a RunIndex
//	Retainer       removing runs by session, principal, age and size    each run is removed by its id
//	Compactor      removing content while the run stays listed          content is removed with the whole run only
//	Shared         several processes on one store (RunIndex and         one process at a time may use the store
//	               SignalStore are part of it)
//	LossWatcher    detecting events that a failover has lost            runs continue from logs that lack acknowledged events
//	RequestStore   client retries that reach another process, or the    the process that served a request recognises its
//	               same one after a restart                             retries until it stops
//	SecretKeeper   the key of what is encrypted for clients is the      each process makes a key when it starts: what its
//	               same in all processes and after a restart            clients bring back is not read after a restart
//	Ledger         budgets of keys and groups, and the report of what   budgets are refused, and no usage is counted
//	               they use
//	ValueKeeper    tools that an operator has disabled stay so in all   each process has its own until it stops
//	               processes and after a restart
//	remote.Queue   calling tools on workers; remote.WorkerIndex, its    no worker can connect
//	               part, lists the workers of all processes
//
// Package store/postgres implements all of them, [Memory] all but [LossWatcher], and store/sqlite, whose file one
// process uses at a time, all but [Shared] and LossWatcher.
//
// # Writing a store
//
// A run is a log of events; everything else is derived from it. [Summary] computes the rows of a RunIndex from the events, [CheckAppend]
// and [CheckSignal] check what is written, [PlanCompaction] applies a Compactor's change, and [Cursor] and [Page] implement paging. A store
// that can execute a Go function in a transaction obtains all interfaces that are not about logs from [NewRecords]. [CallNotifier] delivers
// the notifications of a remote.Queue within a process. Start with Store and storetest.Test, then add one interface and its test at a time.
package store
