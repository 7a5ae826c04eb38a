package oauth

import (
	"testing"

	"github.com/lathe-run/lathe/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
