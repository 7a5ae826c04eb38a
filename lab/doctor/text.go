package doctor

import "fmt"

// bytesText returns a size in KiB, in the form of a configuration, or in bytes if it is below 10 KiB.
func bytesText(n int) string {
	if n < 10<<10 {
		return fmt.Sprintf("%dB", n)
	}
	return fmt.Sprintf("%dKiB", (n+1023)>>10)
}
