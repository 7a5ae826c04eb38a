package outside

import (
	"context"
	"io"
	"io/fs"
	"log/slog"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/agent"
	"github.com/lathe-run/lathe/app"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/guest"
	"github.com/lathe-run/lathe/lab/bfcl"
	"github.com/lathe-run/lathe/lab/doctor"
	"github.com/lathe-run/lathe/lab/eval"
	"github.com/lathe-run/lathe/lab/mock"
	"github.com/lathe-run/lathe/lab/replay"
	"github.com/lathe-run/lathe/lab/verify"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/policy/rules"
	"github.com/lathe-run/lathe/preset"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/remote/worker"
	"github.com/lathe-run/lathe/store/postgres"
	"github.com/lathe-run/lathe/store/sqlite"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/agenttool"
	"github.com/lathe-run/lathe/tool/mcptool"
	"github.com/lathe-run/lathe/tool/remotetool"
	"github.com/lathe-run/lathe/tool/search"
	"github.com/lathe-run/lathe/tool/wasmtool"
	"github.com/lathe-run/lathe/transform"
)

// Constructors of the packages that the other files do not use, with their types in full.
var (
	_ func(*app.Config, *app.Options) (*app.App, error)                                             = app.New
	_ func(lathe.Model, *agent.Options) (*agent.Agent, error)                                       = agent.New
	_ func(*approval.QueueOptions) *approval.Queue                                                  = approval.NewQueue
	_ func(string) (*dialect.Dialect, bool)                                                         = dialect.Lookup
	_ func(lathe.Model, *guest.HostOptions) (*guest.LoopHost, error)                                = guest.NewHost
	_ func(fs.FS) *bfcl.Scorer                                                                      = bfcl.NewScorer
	_ func(context.Context, doctor.Target, *doctor.Options) (*doctor.Report, error)                 = doctor.Run
	_ func(context.Context, doctor.Target, *doctor.Target, *verify.Options) (*verify.Report, error) = verify.Run
	_ func(string, []byte) (*eval.Suite, error)                                                     = eval.Parse
	_ func(*lathe.ToolSpec, ...mock.Answer) *mock.Tool                                              = mock.New
	_ func(io.Reader) (*replay.Record, error)                                                       = replay.Read
	_ func([]*lathe.ToolSpec) *search.Index                                                         = search.NewIndex
	_ func(*slog.Logger) *observe.Slog                                                              = observe.NewSlog
	_ func(...lathe.Policy) lathe.Policy                                                            = policy.All
	_ func([]rules.Rule, *rules.Options) (*rules.Policy, error)                                     = rules.New
	_ func(string, string) (*preset.Patch, error)                                                   = preset.For
	_ func(remote.Queue, *remotetool.Options) *remotetool.Catalogue                                 = remotetool.New
	_ func(*tool.Runner, *worker.Options) (*worker.Worker, error)                                   = worker.New
	_ func(context.Context, string, *postgres.Options) (*postgres.Store, error)                     = postgres.Open
	_ func(string, *sqlite.Options) (*sqlite.Store, error)                                          = sqlite.Open
	_ func(string, string, agenttool.Start, *agenttool.Options) (*agenttool.Tool, error)            = agenttool.New
	_ func(context.Context, []mcptool.Server, *mcptool.Options) (*mcptool.Group, error)             = mcptool.Start
	_ func(string, *wasmtool.Options) (*wasmtool.Folder, error)                                     = wasmtool.Open
	_ func(transform.List, *transform.Options) (*transform.Chain, error)                            = transform.New
)
