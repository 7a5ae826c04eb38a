package doctor

import "fmt"

// bytesText is a size as configurations write it, or in bytes.
func bytesText(n int) string {
	if n < 10<<10 {
		return fmt.Sprintf("%dB", n)
	}
	return fmt.Sprintf("%dKiB", (n+1023)>>10)
}
