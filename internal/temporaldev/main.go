// Command temporaldev is a Temporal server for tests: all its services in one process, with a SQLite file, on a loopback address. It is a
// separate module, because the server depends on 300 modules. `make temporal` builds it.
//
// When the server accepts connections, the command writes its address as the first line of output. It stops on SIGINT and SIGTERM; with
// -stdin also at the end of its standard input, so that it ends together with the tests that started it.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	schema "go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "temporaldev:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("temporaldev", flag.ExitOnError)
	address := flags.String("address", "127.0.0.1:0", "a loopback `address` of the frontend; port 0: a free one")
	file := flags.String("db", "", "the SQLite `file`; it is created if it does not exist")
	namespace := flags.String("namespace", "default", "the `name` of the namespace, which is created if it does not exist")
	// The server reads each of these queues 20 times a second by default: a step of a workflow then takes 50 to 100 ms.
	settings := dynamicconfig.StaticClient{
		dynamicconfig.MakeKey("history.transferProcessorMaxPollRPS"): 2000,
		dynamicconfig.MakeKey("history.timerProcessorMaxPollRPS"):    2000,
	}
	stdin := flags.Bool("stdin", false, "stop when the standard input ends")
	flags.Func("set", "a dynamic setting `KEY=JSON`; may be repeated", func(s string) error {
		key, text, ok := strings.Cut(s, "=")
		var value any
		if err := json.Unmarshal([]byte(text), &value); !ok || err != nil {
			return errors.New("want KEY=JSON")
		}
		if n, ok := value.(float64); ok && n == math.Trunc(n) {
			value = int(n) // settings that are whole numbers do not accept a float64
		}
		settings[dynamicconfig.MakeKey(key)] = value
		return nil
	})
	_ = flags.Parse(args) // ExitOnError: no error is returned
	if *file == "" || flags.NArg() > 0 {
		return errors.New("usage: temporaldev -db FILE [-address 127.0.0.1:PORT] [-namespace NAME] [-set KEY=JSON]…")
	}
	cfg, hosts, err := configure(*address, *file)
	if err != nil {
		return err
	}
	if err := prepare(cfg, *file, *namespace); err != nil {
		return err
	}
	srv, err := temporal.NewServer(
		temporal.WithConfig(cfg),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(hosts),
		temporal.WithLogger(log.NewZapLogger(log.BuildZapLogger(log.Config{Level: "error"}))),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithDynamicConfigClient(settings),
	)
	if err != nil {
		return err
	}
	if err := srv.Start(); err != nil {
		return err
	}
	fmt.Fprintln(out, cfg.PublicClient.HostPort)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	if *stdin {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // until it ends
			stop <- os.Interrupt
		}()
	}
	<-stop
	return srv.Stop()
}

// configure returns the configuration of a server with one node, and the addresses of its services. It refuses addresses that are not
// loopback.
func configure(address, file string) (*config.Config, map[primitives.ServiceName]static.Hosts, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil, err
	}
	ip := net.ParseIP(host)
	if ip == nil || !ip.IsLoopback() {
		return nil, nil, fmt.Errorf("%s is not a loopback address: the server has no authentication", host)
	}
	hosts := map[primitives.ServiceName]static.Hosts{}
	services := map[string]config.Service{}
	for _, name := range []primitives.ServiceName{primitives.FrontendService, primitives.HistoryService, primitives.MatchingService, primitives.WorkerService} {
		own := net.JoinHostPort(host, "0")
		if name == primitives.FrontendService {
			own = address
		}
		port, err := reserve(own)
		if err != nil {
			return nil, nil, err
		}
		services[string(name)] = config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: host}}
		hosts[name] = static.SingleLocalHost(net.JoinHostPort(host, fmt.Sprint(port)))
	}
	frontend := hosts[primitives.FrontendService].Self
	const cell = "active"
	return &config.Config{
		Global:   config.Global{Membership: config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: host}},
		Services: services,
		Persistence: config.Persistence{DefaultStore: sqlite.PluginName, VisibilityStore: sqlite.PluginName, NumHistoryShards: 1,
			DataStores: map[string]config.DataStore{sqlite.PluginName: {SQL: &config.SQL{PluginName: sqlite.PluginName, DatabaseName: file,
				ConnectAttributes: map[string]string{"mode": "rwc", "journal_mode": "wal", "synchronous": "1", "busy_timeout": "10000"}}}}},
		ClusterMetadata: &cluster.Config{FailoverVersionIncrement: 10, MasterClusterName: cell, CurrentClusterName: cell,
			ClusterInformation: map[string]cluster.ClusterInformation{cell: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: frontend}}},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Archival:            config.Archival{History: config.HistoryArchival{State: "disabled"}, Visibility: config.VisibilityArchival{State: "disabled"}},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History: config.HistoryArchivalNamespaceDefaults{State: "disabled"}, Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"}}},
		PublicClient: config.PublicClient{HostPort: frontend},
	}, hosts, nil
}

// reserve returns the port of an address, or a free port if the port is 0.
func reserve(address string) (int, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// prepare creates the tables of a new file and the namespace.
func prepare(cfg *config.Config, file, namespace string) error {
	db := cfg.Persistence.DataStores[sqlite.PluginName].SQL
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		if err := schema.SetupSchema(db); err != nil {
			return err
		}
	}
	own, err := schema.NewNamespaceConfig(cfg.ClusterMetadata.CurrentClusterName, namespace, false, nil)
	if err != nil {
		return err
	}
	return schema.CreateNamespaces(db, own)
}
