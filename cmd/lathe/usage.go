package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/price"
	"github.com/lathe-run/lathe/internal/report"
	"github.com/lathe-run/lathe/store"
)

// usageDimensions are the dimensions by which `lathe usage` can group rows.
var usageDimensions = []string{"day", "key", "group", "model"}

// usageCommand returns the command that reports the usage of model calls.
func usageCommand() *cobra.Command {
	var f struct {
		runsFlags
		By    string `flag:"by" default:"key,model" usage:"*names* of what the rows are grouped by, separated by commas: day, key, group, model"`
		Since string `flag:"since" usage:"from the day of this *time*: 2026-11-01, RFC 3339, or how long ago, such as 7d (default the first of this month)"`
		Until string `flag:"until" usage:"to the end of the day of this *time*, in the same forms (default today)"`
		JSON  bool   `flag:"json" usage:"print one JSON line for each row"`
	}
	return withFlags(&cobra.Command{
		Use: "usage", Short: "Report calls, tokens and cost by key, group, model and day", Args: cobra.NoArgs,
		Long: `Reports what model calls used, from a store or from a running gateway. A gateway shows a key its own calls, and an admin
key those of all keys. Days are those of UTC. The default is this month.`,
		Example: `  lathe usage --store sqlite:runs.db
  lathe usage --server http://127.0.0.1:8700 --key-file admin.key --by day,key --since 7d`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dimensions := strings.Split(f.By, ",")
			for i, d := range dimensions {
				switch {
				case !slices.Contains(usageDimensions, d):
					return usageError("--by: unknown name %q: want some of %s", d, strings.Join(usageDimensions, ", "))
				case slices.Contains(dimensions[:i], d):
					return usageError("--by: %s is named twice", d)
				}
			}
			filter, err := usageFilter(f.Since, f.Until, time.Now().UTC())
			if err != nil {
				return err
			}
			rows, err := readUsage(cmd, &f.runsFlags, filter)
			if err != nil {
				return err
			}
			return printRows(cmd, groupUsage(rows, dimensions), f.JSON, func(out io.Writer, rows []spendRow) error {
				return printUsageTable(out, rows, dimensions)
			})
		},
	}, &f)
}

// usageFilter returns the filter for the days from since to until, which are flags; "": the current month.
func usageFilter(since, until string, now time.Time) (*store.UsageFilter, error) {
	filter := &store.UsageFilter{Since: now.Format("2006-01") + "-01", Until: now.AddDate(0, 0, 1).Format(time.DateOnly)}
	q := store.RunFilter{}
	if err := boundTimes(&q, since, until, now); err != nil {
		return nil, err
	}
	if !q.Since.IsZero() {
		filter.Since = q.Since.UTC().Format(time.DateOnly)
	}
	if !q.Until.IsZero() { // the day is included
		filter.Until = q.Until.UTC().AddDate(0, 0, 1).Format(time.DateOnly)
	}
	if filter.Until <= filter.Since {
		return nil, usageError("--until ends the report before its first day, %s: see --since", filter.Since)
	}
	return filter, nil
}

// readUsage reads the rows from a store, or requests them from a gateway.
func readUsage(cmd *cobra.Command, from *runsFlags, f *store.UsageFilter) (rows []store.UsageRow, err error) {
	err = from.withSource(cmd, func(src runSource) error {
		switch src := src.(type) {
		case *daemonClient:
			rows, err = src.usage(cmd.Context(), f)
			return err
		case *storedRuns:
			if ledger, ok := src.store.(store.Ledger); ok {
				rows, err = ledger.Usage(cmd.Context(), f)
				return storeError(err)
			}
		}
		return usageError("--store: this store does not count usage")
	})
	return rows, err
}

// usage requests the rows from the gateway. Costs are dollars as floating point numbers.
func (c *daemonClient) usage(ctx context.Context, f *store.UsageFilter) ([]store.UsageRow, error) {
	var body struct {
		Data []struct {
			store.UsageRow
			Cost float64 `json:"cost"`
		} `json:"data"`
	}
	until, err := time.Parse(time.DateOnly, f.Until)
	if err != nil {
		return nil, err
	}
	last := until.AddDate(0, 0, -1).Format(time.DateOnly) // the last day, inclusive
	q := url.Values{"since": {f.Since}, "until": {last}}
	if err := c.call(ctx, http.MethodGet, "/api/usage?"+q.Encode(), nil, &body); err != nil {
		return nil, err
	}
	rows := make([]store.UsageRow, len(body.Data))
	for i, r := range body.Data {
		rows[i] = r.UsageRow
		rows[i].Nanos = int64(math.Round(r.Cost * float64(price.Dollar)))
	}
	return rows, nil
}

// A spendRow is a row of `lathe usage`. Dimensions by which the rows are not grouped are nil.
type spendRow struct {
	Day   *string `json:"day,omitempty"`
	Key   *string `json:"key,omitempty"`
	Group *string `json:"group,omitempty"`
	Model *string `json:"model,omitempty"`
	store.Counts
	Cost float64 `json:"cost"` // in US dollars

	names []any // cells of the table: the value of each dimension, in the order in which the user named them
}

// add adds the value of a dimension.
func (r *spendRow) add(dimension, name string) {
	r.names = append(r.names, cmp.Or(printable(name), "-"))
	switch dimension {
	case "day":
		r.Day = &name
	case "key":
		r.Key = &name
	case "group":
		r.Group = &name
	case "model":
		r.Model = &name
	}
}

// groupUsage adds up the rows that are equal in the dimensions. The result is ordered by day, key, group and model.
func groupUsage(rows []store.UsageRow, dimensions []string) []spendRow {
	sums := map[store.UsageKey]store.Counts{}
	for i := range rows {
		k := store.UsageKey{}
		for _, d := range dimensions {
			*dimension(&k, d) = *dimension(&rows[i].UsageKey, d)
		}
		sum := sums[k]
		sum.Add(rows[i].Counts)
		sums[k] = sum
	}
	var sorted []store.UsageRow
	for k, sum := range sums {
		sorted = append(sorted, store.UsageRow{UsageKey: k, Counts: sum})
	}
	slices.SortFunc(sorted, store.CompareUsage)
	grouped := make([]spendRow, len(sorted))
	for i := range sorted {
		r := &grouped[i]
		r.Counts, r.Cost = sorted[i].Counts, price.Money(sorted[i].Nanos).Dollars()
		for _, d := range dimensions {
			r.add(d, *dimension(&sorted[i].UsageKey, d))
		}
	}
	return grouped
}

// dimension returns a pointer to the field of k for a dimension.
func dimension(k *store.UsageKey, name string) *string {
	return map[string]*string{"day": &k.Day, "key": &k.Key, "group": &k.Group, "model": &k.Model}[name]
}

// printUsageTable prints the rows and their total.
func printUsageTable(out io.Writer, rows []spendRow, dimensions []string) error {
	var t report.Table
	row := func(names []any, c *store.Counts) {
		cost := price.Money(c.Nanos).String()
		if c.Unpriced > 0 {
			cost += fmt.Sprintf(" (%d of the calls without a price)", c.Unpriced)
		}
		t.Row(append(names, c.Calls, c.InputTokens, c.OutputTokens, cost)...)
	}
	var head []any
	for _, d := range dimensions {
		head = append(head, strings.ToUpper(d))
	}
	t.Row(append(head, "CALLS", "INPUT TOKENS", "OUTPUT TOKENS", "US DOLLARS")...)
	var total store.Counts
	for i := range rows {
		row(rows[i].names, &rows[i].Counts)
		total.Add(rows[i].Counts)
	}
	names := slices.Repeat([]any{""}, len(dimensions))
	names[0] = "total"
	row(names, &total)
	return t.Write(out)
}
