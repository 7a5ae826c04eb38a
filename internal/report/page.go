package report

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"strings"
)

// Pages are written by hand rather than by html/template: a template finds methods by names that it
// learns at run time, so that the linker would have to keep every exported method of the whole program.

// pageStyle has the colours for light and for dark screens, and the forms that all pages share.
//
//go:embed page.css
var pageStyle string

// Markup is what a page is written in. A constant becomes markup by itself; text from outside does not.
type Markup string

// A Page is one page of HTML that requests nothing from the network, and has a policy that tells the browser so. Its first error
// stays and is returned by Close.
type Page struct{ w *bufio.Writer }

// NewPage writes the head of a page, and its title as the first heading. style is CSS.
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

// Escape makes text harmless between tags and in quoted attributes of HTML and SVG.
func Escape(text string) string { return escaper.Replace(text) }

// Put writes markup, with a value as text in the place of each {}.
func (p *Page) Put(m Markup, values ...any) {
	rest := string(m)
	for _, v := range values {
		before, after, ok := strings.Cut(rest, "{}")
		if !ok {
			panic("report: more values than places in " + string(m))
		}
		p.raw(before)
		_, _ = escaper.WriteString(p.w, fmt.Sprint(v)) // the writer keeps its first error
		rest = after
	}
	p.raw(rest)
}

func (p *Page) raw(s string) { _, _ = p.w.WriteString(s) }

// Either returns one of two pieces of markup.
func Either(yes bool, a, b Markup) Markup {
	if yes {
		return a
	}
	return b
}

// Close ends the page.
func (p *Page) Close() error {
	p.raw("</main>\n</body>\n</html>\n")
	return p.w.Flush()
}
