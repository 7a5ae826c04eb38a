//go:build !linux

package pgtest

func sharedFolder() string { return "" }
