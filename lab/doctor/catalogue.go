package doctor

import (
	_ "embed"
	"encoding/json"
	"slices"
	"sync"
)

//go:embed catalogue.json
var catalogueJSON []byte

// catalogue returns the severity and the sentences of all findings, by group in the order of the report.
var catalogue = sync.OnceValue(func() (all []Finding) {
	if err := json.Unmarshal(catalogueJSON, &all); err != nil {
		panic(err) // cannot happen: a test reads the file
	}
	return all
})

// Catalogue returns all findings that [Run] can report, sorted by group and without details. The slice belongs to the caller.
func Catalogue() []Finding { return slices.Clone(catalogue()) }

func newFinding(id string) *Finding {
	for _, f := range catalogue() {
		if f.ID == id {
			return &f
		}
	}
	panic("doctor: no finding " + id + " in the catalogue")
}
