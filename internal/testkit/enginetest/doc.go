// Package enginetest tests that runs survive faults. It has two kinds of tests:
//
//   - [Simulate] executes runs in several simulated processes of one engine. Processes are killed, stores fail and approvers answer late. A
//     simulation is a function of its seed: each step of it passes a [Stop], at which the simulation decides which goroutine runs next and
//     which fault it meets. One goroutine runs at a time, and time is that of [testing/synctest].
//   - [Conform] executes fixed scenarios with any [Engine], whose processes are made by an [Environment], and compares the events with those
//     of [engine.Supervisor].
//
// Both record what happened in a [History]; [History.Check] holds the checks that every history must pass.
package enginetest
