package app

import (
	"slices"
	"testing"

	"github.com/lathe-run/lathe/internal/config"
)

// A key of the file has the rights of its entry for objects and tools of vendors, too.
func TestRightsForVendorsReachTheKeys(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Keys = map[string]*config.APIKey{"team": {SHA256: "aa", VendorObjects: []string{"file"}, VendorTools: []string{}}}
	cfg.FileKeys = map[string]config.FileKey{"ann": {Profile: "team"}}
	for _, k := range keysOf(cfg) {
		if !slices.Equal(k.VendorObjects, []string{"file"}) || k.VendorTools == nil || len(k.VendorTools) > 0 {
			t.Errorf("%s: %q %q", k.Name, k.VendorObjects, k.VendorTools)
		}
	}
}
