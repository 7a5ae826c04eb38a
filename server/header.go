package server

// Values of headers that many answers have. They are shared, and never changed.
var (
	uncached    = []string{"no-store"}
	typeJSON    = []string{"application/json"}
	typeEvents  = []string{"text/event-stream"}
	noBuffering = []string{"no"}
	noSniffing  = []string{"nosniff"}
)
