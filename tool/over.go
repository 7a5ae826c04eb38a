package tool

// Over returns a runner for another set, with the options of r, and with its cache and secrets. The options are not checked for the new set:
// with a nil Policy, all of its calls are denied. Each runner counts its own abandoned calls.
func (r *Runner) Over(set *Set) *Runner {
	return &Runner{set: set, opts: r.opts, hash: r.hash, cache: r.cache, secrets: r.secrets}
}
