// A client of a relay: post, query, count, subscribe, delete, with go-nostr. Prints "ok", or the first difference.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/nbd-wtf/go-nostr"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ok")
}

func run(ctx context.Context, url string) error {
	relay, err := nostr.RelayConnect(ctx, url)
	if err != nil {
		return err
	}
	secret := nostr.GeneratePrivateKey()
	author, err := nostr.GetPublicKey(secret)
	if err != nil {
		return err
	}
	event := func(kind int, at nostr.Timestamp, content string, tags ...nostr.Tag) nostr.Event {
		event := nostr.Event{Kind: kind, CreatedAt: at, Content: content, Tags: tags}
		if err := event.Sign(secret); err != nil {
			panic(err)
		}
		return event
	}
	mine := nostr.Filter{Authors: []string{author}}
	expect := func(step string, wanted ...nostr.Event) error {
		found, err := relay.QuerySync(ctx, mine)
		if err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
		if len(found) != len(wanted) {
			return fmt.Errorf("%s: %d events, %d wanted", step, len(found), len(wanted))
		}
		for number, event := range found {
			if valid, _ := event.CheckSignature(); event.ID != wanted[number].ID || !valid {
				return fmt.Errorf("%s: event %d is %s, %s wanted", step, number, event, wanted[number])
			}
		}
		return nil
	}

	live, err := relay.Subscribe(ctx, nostr.Filters{mine})
	if err != nil {
		return err
	}
	<-live.EndOfStoredEvents
	first := event(nostr.KindTextNote, 1_000, "first", nostr.Tag{"t", "deeds"})
	old := event(nostr.KindProfileMetadata, 1_001, `{"name":"old"}`)
	profile := event(nostr.KindProfileMetadata, 1_002, `{"name":"new"}`)
	for _, event := range []nostr.Event{first, old, profile} {
		if err := relay.Publish(ctx, event); err != nil {
			return err
		}
		select {
		case found := <-live.Events:
			if found.ID != event.ID {
				return fmt.Errorf("subscription: %s, %s wanted", found, event)
			}
		case <-ctx.Done():
			return fmt.Errorf("no event of the subscription")
		}
	}
	if err := expect("posted", profile, first); err != nil {
		return err
	}
	if relay.Publish(ctx, old) == nil {
		return fmt.Errorf("the relay took a replaced profile")
	}
	gone := event(nostr.KindDeletion, 1_003, "", nostr.Tag{"e", first.ID})
	if err := relay.Publish(ctx, gone); err != nil {
		return err
	}
	if err := expect("deleted", gone, profile); err != nil {
		return err
	}
	if relay.Publish(ctx, first) == nil {
		return fmt.Errorf("the relay took a deleted event")
	}
	count, err := relay.Count(ctx, nostr.Filters{mine})
	if err == nil && count != 2 {
		err = fmt.Errorf("%d events counted, 2 wanted", count)
	}
	return err
}
