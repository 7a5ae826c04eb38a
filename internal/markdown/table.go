package markdown

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// endTable writes the buffered table: aligned if its second line is a valid delimiter row, else line by line.
func (w *Writer) endTable() {
	rows := w.table
	w.table, w.size = nil, 0
	if len(rows) == 0 {
		return
	}
	var align []alignment
	if len(rows) > 1 {
		align = alignments(cells(rows[1]))
	}
	if align == nil {
		for i, row := range rows {
			w.text.line(row)
			w.endRow(i, len(rows))
		}
		return
	}
	texts, widths := w.render(slices.Delete(rows, 1, 2), len(align))
	for i, line := range texts {
		if i == 0 {
			w.text.startStyle(bold)
		}
		w.row(line, widths, align)
		if i == 0 {
			w.text.endStyle(bold)
			w.buf.WriteByte('\n')
			rule := make([]string, len(widths))
			for j, n := range widths {
				rule[j] = strings.Repeat("─", n)
			}
			w.paint(dim, strings.Join(rule, "──"))
		}
		w.endRow(i, len(texts))
	}
}

// render returns the rendered cells of the rows, at most columns of each, and the greatest width of each column.
func (w *Writer) render(rows [][]byte, columns int) (texts [][]string, widths []int) {
	texts, widths = make([][]string, len(rows)), make([]int, columns)
	for i, row := range rows {
		for j, cell := range cells(row) {
			if j == columns {
				break
			}
			var out bytes.Buffer
			t := inline{out: &out, colour: w.colour}
			t.line(cell)
			texts[i] = append(texts[i], out.String())
			widths[j] = max(widths[j], width(out.String()))
		}
	}
	return texts, widths
}

// endRow writes the line end of row i of n. The line end of the last row is written by end, or with the next line.
func (w *Writer) endRow(i, n int) {
	if i < n-1 || w.state == afterRow {
		w.buf.WriteByte('\n')
	}
}

func (w *Writer) row(line []string, widths []int, align []alignment) {
	for j, n := range widths {
		text := ""
		if j < len(line) {
			text = line[j]
		}
		left, right := 0, n-width(text)
		switch align[j] {
		case alignRight:
			left, right = right, 0
		case alignCentre:
			left = right / 2
			right -= left
		case alignLeft:
		}
		if j == len(widths)-1 {
			right = 0
		}
		w.buf.WriteString(strings.Repeat(" ", left) + text + strings.Repeat(" ", right))
		if j < len(widths)-1 {
			w.buf.WriteString("  ")
		}
	}
}

// line renders a whole line.
func (t *inline) line(text []byte) {
	for _, c := range text {
		t.byte(c)
	}
	t.end()
}

type alignment int

const (
	alignLeft alignment = iota
	alignCentre
	alignRight
)

// alignments returns the alignments of the columns in a delimiter row; nil if row is none.
func alignments(row [][]byte) []alignment {
	var out []alignment
	for _, c := range row {
		dashes := strings.Trim(string(c), ":")
		if dashes == "" || strings.Trim(dashes, "-") != "" {
			return nil
		}
		a := alignLeft
		if c[len(c)-1] == ':' {
			a = alignRight
			if c[0] == ':' {
				a = alignCentre
			}
		}
		out = append(out, a)
	}
	return out
}

// cells divides a line of a table into its cells. \| is not a border.
func cells(row []byte) [][]byte {
	row = bytes.TrimPrefix(bytes.TrimSpace(row), []byte("|"))
	var out [][]byte
	begin := 0
	for i, c := range row {
		if c == '|' && (i == 0 || row[i-1] != '\\') {
			out = append(out, bytes.TrimSpace(row[begin:i]))
			begin = i + 1
		}
	}
	if rest := bytes.TrimSpace(row[begin:]); len(rest) > 0 {
		out = append(out, rest)
	}
	return out
}

// width returns the number of terminal columns of s, without escape sequences. For scripts whose characters join, it is an estimate.
func width(s string) int {
	n := 0
	for len(s) > 0 {
		if strings.HasPrefix(s, "\x1b[") {
			if i := strings.IndexByte(s, 'm'); i > 0 {
				s = s[i+1:]
				continue
			}
		}
		r, size := utf8.DecodeRuneInString(s)
		s = s[size:]
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf): // in the column of the character before it
		case r >= 0x1100 && (unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana) || r >= 0x3000 && r <= 0x303F || r >= 0xFF01 && r <= 0xFF60 || r >= 0x1F300 && r <= 0x1FAFF):
			n += 2
		default:
			n++
		}
	}
	return n
}
