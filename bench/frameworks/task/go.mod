module github.com/lathe-run/lathe/bench/frameworks/task

go 1.26.0
