package dialect

// escaped returns text as in a JSON string, without the quotes, with U+FFFD instead of each byte that is not UTF-8.
func escaped(text string) string {
	quoted := quoteJSON(text)
	return quoted[1 : len(quoted)-1]
}

// plainRun returns the number of bytes at the beginning of s that are neither a double quote, a backslash nor a control character.
func plainRun(s string) int { return plainRunTo(s, '"') }

// plainRunTo is like plainRun, but also stops at the byte quote.
func plainRunTo(s string, quote byte) int {
	i := 0
	for i < len(s) && s[i] >= ' ' && s[i] != '"' && s[i] != '\\' && s[i] != quote {
		i++
	}
	return i
}
