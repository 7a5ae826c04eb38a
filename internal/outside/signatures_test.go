package outside

import (
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/dialect/dialecttest"
	"github.com/lathe-run/lathe/engine/enginetest"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/store/postgres/pgtest"
	"github.com/lathe-run/lathe/tool/remotetool/remotetest"
)

// The helpers for tests that the other files do not use, with their types written out.
var (
	_ func(testing.TB, func() dialect.Parser, string, string) []lathe.Delta = dialecttest.Check
	_ func(testing.TB, *enginetest.Options) *enginetest.History             = enginetest.Simulate
	_ func(testing.TB) string                                               = pgtest.URL
	_ func(testing.TB, remote.Queue, ...lathe.Tool) *remotetest.Site        = remotetest.Open
)
