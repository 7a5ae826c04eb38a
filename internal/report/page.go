package report

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"strings"
)

// Pages do not use html/template: a template finds methods by name at run time, so that the linker would have to retain every exported
// method of the program.

// pageStyle has the colours for light and for dark screens, and the forms that all pages share.
//
//go:embed page.css
var pageStyle string

// Markup is HTML source. A constant string converts to Markup implicitly; text from outside does not.
type Markup string

// A Page writes an HTML page that makes no network requests, and that forbids them by a Content-Security-Policy. Close returns the first
// error of a write.
type Page struct{ w *bufio.Writer }

// NewPage writes the head of a page, with title as the title and first heading. style is CSS that is added to the common style.
func NewPage(w io.Writer, title, style string) *Page {
	p := &Page{bufio.NewWriter(w)}
	p.Put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{}</title>
<style>
`, title)
	p.raw(pageStyle)
	p.raw(style)
	p.Put("</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n", title)
	return p
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "\x00", "\uFFFD")

// Escape escapes text for use between tags and in quoted attributes of HTML and SVG.
func Escape(text string) string { return escaper.Replace(text) }

// Put writes markup and replaces each {} by a value as escaped text. It panics if there are more values than {}.
func (p *Page) Put(m Markup, values ...any) {
	rest := string(m)
	for _, v := range values {
		before, after, ok := strings.Cut(rest, "{}")
		if !ok {
			panic("report: more values than places in " + string(m))
		}
		p.raw(before)
		_, _ = escaper.WriteString(p.w, fmt.Sprint(v)) // the writer stores its first error
		rest = after
	}
	p.raw(rest)
}

func (p *Page) raw(s string) { _, _ = p.w.WriteString(s) }

// Either returns a if yes is true, else b.
func Either(yes bool, a, b Markup) Markup {
	if yes {
		return a
	}
	return b
}

// Close writes the end of the page and returns the first error of all writes.
func (p *Page) Close() error {
	p.raw("</main>\n</body>\n</html>\n")
	return p.w.Flush()
}
