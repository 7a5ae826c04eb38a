// Package task is what the programs of the comparison share: the functions of the three tools, and the HTTP service around an [Assistant].
package task

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
)

// Words of the task, which each program gives to its library.
const (
	Instructions  = "You answer questions about orders. A refund needs the number of the order."
	FindOrder     = "find_order"
	FindOrderText = "Returns the state of an order."
	Refund        = "refund"
	RefundText    = "Refunds an order."
	Status        = "payment_status"
	StatusText    = "Returns the state of the payment service."
	Refused       = "A person has refused the refund."
)

// An Order is the input of two tools.
type Order struct {
	Number string `json:"number"`
}

// None is the input of a tool without arguments.
type None struct{}

// A Call waits for an approval.
type Call struct {
	ID        string
	Run       string // the run, session or conversation of the call
	Tool      string
	Arguments string
}

// An Assistant answers with a model and the three tools.
type Assistant interface {
	// Ask begins a conversation and writes the text of the model as it arrives, until the answer is complete or a refund waits.
	Ask(ctx context.Context, question string, out io.Writer) error
	// Waiting returns the refunds that wait for an approval, those of an earlier process included.
	Waiting(ctx context.Context) ([]Call, error)
	// Decide approves or refuses a refund and writes the text that follows.
	Decide(ctx context.Context, id string, approved bool, out io.Writer) error
}

// A Continuer is an Assistant whose library continues the runs of a killed process without a request.
type Continuer interface {
	// Continue writes the answer of such a run.
	Continue(ctx context.Context, run string, out io.Writer) error
}

// Tools are the functions of the tools.
type Tools struct {
	effects string // the file to which refunds are appended
	hold    bool   // a refund does not return
}

// FindOrder only reads.
func (t *Tools) FindOrder(_ context.Context, in Order) (string, error) {
	if in.Number != "A-17" {
		return "", fmt.Errorf("there is no order %q", in.Number)
	}
	return "delivered", nil
}

// Status only reads.
func (t *Tools) Status(context.Context, None) (string, error) {
	return "all payments work", nil
}

// Refund appends a line to the file of effects. If the process was started with -hold, it then prints a line and does not return: the
// process is killed after the effect of the call and before its result.
func (t *Tools) Refund(_ context.Context, in Order) (string, error) {
	f, err := os.OpenFile(t.effects, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(f, "refund %q\n", in.Number); err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	if t.hold {
		fmt.Println("refunded")
		select {}
	}
	return "refunded", nil
}

// A Config is what a program is started with.
type Config struct {
	ModelURL string // address of the model server, without the path of a wire
	Model    string
	State    string // folder for what must survive the process
	Tools    *Tools
}

// Serve runs an assistant as a service until the process is killed. It prints the address on which it listens.
func Serve(open func(ctx context.Context, cfg *Config) (Assistant, error)) {
	cfg := &Config{Tools: &Tools{}}
	flag.StringVar(&cfg.ModelURL, "model-url", "", "address of the model server")
	flag.StringVar(&cfg.Model, "model", "sim/demo", "name of the model")
	flag.StringVar(&cfg.State, "state", "", "folder of the state")
	flag.StringVar(&cfg.Tools.effects, "effects", "", "file to which refunds are appended")
	flag.BoolVar(&cfg.Tools.hold, "hold", false, "a refund does not return")
	flag.Parse()
	a, err := open(context.Background(), cfg)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready", listener.Addr())
	log.Fatal(http.Serve(listener, handler(a)))
}

func handler(a Assistant) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /ask", func(w http.ResponseWriter, r *http.Request) {
		question, _ := io.ReadAll(r.Body)
		end(w, a.Ask(r.Context(), string(question), flusher{w}))
	})
	mux.HandleFunc("GET /waiting", func(w http.ResponseWriter, r *http.Request) {
		calls, err := a.Waiting(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(calls)
	})
	for verb, approved := range map[string]bool{"approve": true, "refuse": false} {
		mux.HandleFunc("POST /"+verb, func(w http.ResponseWriter, r *http.Request) {
			end(w, a.Decide(r.Context(), r.URL.Query().Get("id"), approved, flusher{w}))
		})
	}
	mux.HandleFunc("POST /continue", func(w http.ResponseWriter, r *http.Request) {
		if c, ok := a.(Continuer); ok {
			end(w, c.Continue(r.Context(), r.URL.Query().Get("run"), flusher{w}))
		}
	})
	return mux
}

// ErrorMark begins the error at the end of an answer.
const ErrorMark = "[error] "

func end(w io.Writer, err error) {
	if err != nil {
		fmt.Fprintf(w, "\n%s%v", ErrorMark, err)
	}
}

type flusher struct{ w http.ResponseWriter }

func (f flusher) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	if err == nil {
		err = http.NewResponseController(f.w).Flush()
	}
	return n, err
}
