package tool

// Over returns a runner for another set. It shares everything else with r: options, cache and secrets.
func (r *Runner) Over(set *Set) *Runner {
	return &Runner{set: set, opts: r.opts, hash: r.hash, cache: r.cache, secrets: r.secrets}
}
