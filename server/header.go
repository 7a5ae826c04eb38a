package server

// Values of headers that many answers have. They are shared, and never changed.
var (
	uncached   = []string{"no-store"}
	typeJSON   = []string{"application/json"}
	noSniffing = []string{"nosniff"}
)
