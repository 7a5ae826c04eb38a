package postgres_test

import (
	"context"
	"fmt"

	"github.com/lathe-run/lathe/store/postgres"
)

func ExampleOpen() {
	ctx := context.Background()
	s, err := postgres.Open(ctx, "postgres://app@db:5432/tools?sslmode=verify-full", nil)
	if err != nil {
		fmt.Println(err) // what to do about it
		return
	}
	defer func() { _ = s.Close() }() // it has no error
	rows, _, err := s.Runs(ctx, nil)
	fmt.Println(len(rows), err)
}
