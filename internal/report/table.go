package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe/internal/text"
)

// A Table is a list of rows for a terminal. The zero Table is empty.
type Table struct{ rows [][]string }

// Row appends a row. Each cell is formatted with fmt.Sprint and put on one line: see [text.OneLine].
func (t *Table) Row(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = text.OneLine(fmt.Sprint(c))
	}
	t.rows = append(t.rows, row)
}

// gap is the number of blanks between the widest cell of a column and the next column.
const gap = 2

// Write writes one line for each row, with aligned columns and no trailing blanks.
func (t *Table) Write(w io.Writer) error {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, gap)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell)+gap)
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		line := ""
		for i, cell := range row {
			line += fmt.Sprintf("%-*s", widths[i], cell)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteMarkdown writes the rows as a Markdown table whose first row is the header. align has one letter for each column: l for text, r for
// numbers.
func (t *Table) WriteMarkdown(w io.Writer, align string) error {
	var b strings.Builder
	for i, row := range t.rows {
		for _, cell := range row {
			b.WriteString(strings.TrimRight("| "+strings.ReplaceAll(cell, "|", `\|`), " ") + " ")
		}
		b.WriteString("|\n")
		if i == 0 {
			b.WriteString("|" + strings.NewReplacer("l", "---|", "r", "--:|").Replace(align) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
