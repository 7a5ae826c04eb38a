//go:build !linux

package main

import "testing"

func runImage(t *testing.T, _ string, _ map[string]any) { t.Skip("the program is for Linux") }
