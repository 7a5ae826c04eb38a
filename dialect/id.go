package dialect

const idLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// newID returns an id in OpenAI's style, `call_` and 24 letters and digits, or "" if Options.Rand is nil.
func (r *reader) newID() string {
	if r.opts.Rand == nil {
		return ""
	}
	return "call_" + randomLetters(r.opts.Rand, 24)
}

// randomLetters returns n random letters and digits. It uses each number of rand for ten of them.
func randomLetters(rand func() uint64, n int) string {
	const k = uint64(len(idLetters))
	b := make([]byte, 0, n)
	for len(b) < n {
		for v, i := rand(), 0; i < 10 && len(b) < n; v, i = v/k, i+1 {
			b = append(b, idLetters[v%k])
		}
	}
	return string(b)
}
