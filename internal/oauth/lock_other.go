//go:build !unix

package oauth

import "os"

func lockFile(*os.File) error { return nil }
