package jobstore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"

	"sunhwa/shared/job"
	"sunhwa/shared/jobstore"
)

// A job's whole way: start claims the target, a worker takes the job up, records
// each answer and finishes. Somebody who starts meanwhile is told the same job.
func Example() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	rdb := jobstore.NewClient(jobstore.ClientOptions{Addrs: []string{server.Addr()}})
	defer rdb.Close()
	store, ctx := jobstore.New(rdb, jobstore.Options{}), context.Background()

	// start
	target := job.Target{Tenant: "acme", ID: "course-1"}
	comments := []job.Comment{{ID: "a", Text: "설명이 엉망이다"}, {ID: "b", Text: "boring"}}
	creation := job.Creation{
		Comments: comments, Digest: job.InputDigest(comments), Spec: job.Spec{Model: "m", PromptVersion: "v1"},
		Deadline: 10 * time.Minute, Retention: 24 * time.Hour, Lease: 45 * time.Second,
	}
	creation.Ref = job.Ref{ID: mint(target), Target: target}
	fmt.Println("acquire:", store.Acquire(ctx, creation))

	second := creation
	second.ID = mint(target)
	var held *job.HeldError
	if errors.As(store.Acquire(ctx, second), &held) {
		fmt.Println("the other start is told the same job:", held.Holder == creation.ID)
	}

	// worker
	token, err := job.NewToken()
	if err != nil {
		log.Fatal(err)
	}
	attempt := job.Attempt{Ref: creation.Ref, Token: token, Lease: 45 * time.Second}
	begun, err := store.Begin(ctx, attempt)
	if err != nil {
		log.Fatal(err)
	}
	for i, c := range begun.Comments {
		answer := job.Result{Index: i, Text: "polite: " + c.Text, MemoKey: begun.Spec.MemoKey(c.Text)}
		progress, err := store.Record(ctx, attempt, []job.Result{answer}, job.Extra{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("recorded %d of %d\n", progress.Done, len(begun.Comments))
	}
	fmt.Println("finish:", store.Finish(ctx, attempt, begun.Kept, job.Extra{}))

	// status
	finished, results, err := store.Results(ctx, creation.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(finished.Status)
	for _, r := range results {
		fmt.Printf("%s: %s -> %s\n", r.ID, r.Before, r.After)
	}

	// Output:
	// acquire: <nil>
	// the other start is told the same job: true
	// recorded 1 of 2
	// recorded 2 of 2
	// finish: <nil>
	// SUCCESS
	// a: 설명이 엉망이다 -> polite: 설명이 엉망이다
	// b: boring -> polite: boring
}

func mint(target job.Target) job.ID {
	id, err := job.NewID(time.Now(), target)
	if err != nil {
		log.Fatal(err)
	}
	return id
}
