// Package store keeps the logs of runs in memory. Package storetest holds the suite that every
// store passes, whatever it keeps its logs in.
package store
