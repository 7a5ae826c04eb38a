package main

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

type order struct {
	Number string `json:"number" jsonschema:"the number of the order, such as A-17"`
}

type state struct {
	Number string `json:"number"`
	State  string `json:"state"`
	Cents  int    `json:"cents"`
}

var orders = map[string]state{"A-17": {"A-17", "delivered", 4200}, "B-4": {"B-4", "in transit", 1950}}

// findOrder only reads: the policy allows it.
func findOrder() lathe.Tool {
	return tool.Func("find_order", "Finds an order and returns its state and its price.", func(_ context.Context, in order) (state, error) {
		found, ok := orders[in.Number]
		if !ok {
			return state{}, tool.Fail(lathe.CodeExecutionFailed, "there is no order %s", in.Number) // the model reads this
		}
		return found, nil
	}, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}})
}

// refund writes: the policy asks for an approval, and a call that a killed process has begun is not repeated. If the payment service
// executes requests with one Idempotency-Key once, the effect is lathe.Idempotent, and such a call is sent again.
func refund(url string) lathe.Tool {
	return tool.Func("refund", "Refunds an order.", func(ctx context.Context, in order) (string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(in.Number))
		if err != nil {
			return "", err
		}
		req.Header.Set("Idempotency-Key", lathe.CallMetaFrom(ctx).IdempotencyKey)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		if err == nil && resp.StatusCode != http.StatusOK {
			err = tool.Fail(lathe.CodeExecutionFailed, "the payment service answered %s", resp.Status)
		}
		return string(text), err
	}, &tool.FuncOptions{Effect: lathe.Writes, Show: []string{"*"}})
}
