//go:build !linux

package daemon

// releasePages does nothing: this system does not report the pages of the program file.
func releasePages() {}
