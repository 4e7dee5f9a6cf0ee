"""The words of which tools are put together: things by field of life, and actions with the many ways to name, describe and ask
for each of them."""

# One field a line. Those behind "!" are kept for the tests.
FIELDS = """
farm: cow sheep barn field fence tractor hen plough stable goat pasture
sea: ship port sailor buoy lighthouse dock crew cargo ferry yacht hull mast
air: plane pilot runway gate balloon glider hangar wing propeller helicopter
road: truck bus lane toll bridge tunnel sign trailer scooter van taxi crossing
rail: tram wagon locomotive signal carriage track depot conductor
sport: match player coach stadium trophy league racket goal referee season jersey
music: song band choir drum violin concert album piano chorus melody
book: novel chapter author poem page cover dictionary atlas diary essay
film: movie actor scene trailer ticket screen director script episode series
office: desk report meeting folder memo stapler contract budget calendar badge
shop: product basket discount receipt brand shelf voucher customer invoice catalog
money: account loan payment coin wallet bond stock refund fund tax salary
computer: server database backup password file keyboard monitor router cable laptop printer
code: function branch commit release bug test package module pipeline build
web: website link cookie domain banner form blog comment forum feed
phone: contact call message ringtone battery charger app photo video
health: patient doctor nurse pill bandage vaccine clinic therapy wheelchair ward
school: pupil teacher lesson exam class homework grade classroom course diploma
food: recipe pizza soup cake bread sandwich salad cheese sausage pancake
drink: coffee tea juice smoothie lemonade cocktail milkshake bottle glass
kitchen: oven pan knife fridge toaster mixer kettle plate spoon recipe
house: door window lamp sofa carpet curtain heater roof chimney staircase
garden: rose lawn hedge tree seed shovel fountain greenhouse mower flowerpot
animal: dog cat horse rabbit parrot hamster turtle pony canary lizard
wild: bear wolf eagle whale fox elephant penguin tiger crocodile owl
travel: hotel flight passport suitcase tour guidebook hostel souvenir resort visa
post: parcel letter stamp envelope courier mailbox package postcard
party: guest invitation cake balloon present costume lantern firework
law: judge trial lawyer witness verdict clause permit licence fine
science: sample experiment microscope molecule laboratory probe rocket satellite planet
factory: machine robot conveyor valve turbine gear crane pallet drill
power: generator cable battery panel windmill meter grid transformer
art: painting statue gallery brush sketch poster mosaic frame
clothes: shirt jacket scarf glove boot dress button zipper hat sweater
tools: hammer saw ladder screw wrench bolt nail toolbox
office2: task project team deadline milestone agenda note reminder
bee!: apiary queenbee honeycomb swarm beekeeper pollenbag smoker
clock!: wristwatch pendulum cuckoo hourglass sundial chronometer dial
space!: spacesuit airlock capsule shuttle orbiter lander thruster
snow!: sledge igloo snowman iceskate snowplough icicle toboggan
circus!: clown juggler acrobat trapeze tightrope ringmaster bigtop
cheese!: dairy curd rennet brine cheddar creamery whey
castle!: drawbridge moat dungeon knight turret banner catapult
print!: typewriter inkwell quill parchment bookbinder woodcut letterpress
"""

# key: words for the name | descriptions | requests. {n} one thing, {ns} several, {h} how it is told from others, {v} a new value.
ACTIONS = """
create: create add new make register insert set_up | Creates {an}./Adds a new {n}./Registers {an} under a name./Sets up {an}. | I need a new {n} called {v} ; please add a {n} named {v} ; set up a {n} with the name {v} ; there should be one more {n}, call it {v} ; register the {n} {v}
delete: delete remove erase drop discard destroy | Deletes {an}./Removes {an} for good./Takes {an} off the list./Gets rid of {an}. | get rid of the {n} {h} ; the {n} {h} can go ; I do not need the {n} {h} any more ; throw away the {n} {h} ; delete the {n} {h}
show: get show view read fetch display describe | Shows the details of {an}./Returns everything about {an}./Gives information on {an}. | what do you know about the {n} {h} ; I want to see the {n} {h} ; tell me about the {n} {h} ; give me the details of the {n} {h} ; open the page of the {n} {h}
list: list all browse enumerate overview | Lists all {ns}./Gives an overview of the {ns}./Shows every {n} there is. | which {ns} are there {w} ; what {ns} do we have {w} ; give me all {ns} {w} ; show every {n} {w} ; I need an overview of the {ns} {w}
count: count number_of tally total how_many | Counts the {ns}./Tells how many {ns} there are./Number of {ns}. | how many {ns} are there {w} ; what is the number of {ns} {w} ; count the {ns} {w} ; do we have many {ns} {w}
rename: rename retitle relabel change_name | Gives {an} another name./Changes the name of {an}. | the {n} {h} should be called {v} ; from now on call the {n} {h} {v} ; change the name of the {n} {h} to {v} ; rename the {n} {h} to {v}
move: move transfer relocate shift bring | Moves {an} to another place./Brings {an} somewhere else./Changes where {an} is. | take the {n} {h} to {p} ; the {n} {h} belongs in {p} ; put the {n} {h} into {p} ; move the {n} {h} to {p} ; I want the {n} {h} in {p}
locate: locate find_place where_is track position | Tells where {an} is./Finds the place of {an}./Position of {an}. | where is the {n} {h} ; I cannot find the {n} {h} ; in which place is the {n} {h} ; where did the {n} {h} end up
price: price cost value quote worth | Tells what {an} costs./Price of {an}./How expensive {an} is. | how much is the {n} {h} ; what does the {n} {h} cost ; is the {n} {h} expensive ; what must I pay for the {n} {h}
buy: buy purchase order acquire | Buys {ns}./Orders a number of {ns}./Makes a purchase of {ns}. | I want to have {k} {ns} ; get me {k} {ns} ; order {k} {ns} ; we need {k} more {ns}, buy them
sell: sell offer put_on_sale auction | Sells {an}./Offers {an} to buyers./Puts {an} up for sale. | I want money for the {n} {h} ; find somebody who buys the {n} {h} ; put the {n} {h} on sale ; sell the {n} {h}
repair: repair fix mend service | Has {an} repaired./Sends somebody to fix {an}./Mends {an}. | the {n} {h} is broken ; something is wrong with the {n} {h}, have it mended ; the {n} {h} does not work any more ; fix the {n} {h}
inspect: inspect check examine test verify | Checks the state of {an}./Says whether {an} is all right./Looks for faults in {an}. | is the {n} {h} all right ; does the {n} {h} still work ; look whether the {n} {h} is in good shape ; check the {n} {h}
start: start launch activate switch_on begin | Starts {an}./Switches {an} on./Puts {an} into operation. | get the {n} {h} going ; turn on the {n} {h} ; let the {n} {h} run ; start the {n} {h}
stop: stop halt deactivate switch_off end | Stops {an}./Switches {an} off./Brings {an} to a halt. | the {n} {h} should not run any longer ; turn off the {n} {h} ; make the {n} {h} stand still ; stop the {n} {h}
reserve: reserve book hold save_place | Reserves {an} for somebody./Keeps {an} free for a person./Books {an}. | {v} wants to have the {n} {h}, keep it ; keep the {n} {h} for {v} ; book the {n} {h} for {v} ; nobody but {v} may take the {n} {h}
lend: lend rent hire_out borrow | Lends {an} for some days./Hires {an} out./Lets somebody borrow {an}. | I would like to use the {n} {h} for {k} days ; may I borrow the {n} {h} for {k} days ; rent me the {n} {h} for {k} days
paint: paint color dye tint | Gives {an} another color./Paints {an}. | I want the {n} {h} in {c} ; make the {n} {h} {c} ; the {n} {h} should be {c} ; paint the {n} {h} {c}
weigh: weigh weight_of measure_weight | Tells how heavy {an} is./Weight of {an}. | how heavy is the {n} {h} ; how many kilos has the {n} {h} ; what does the {n} {h} weigh
clean: clean wash scrub polish | Cleans {an}./Washes {an}./Removes dirt from {an}. | the {n} {h} is dirty ; there are stains on the {n} {h} ; make the {n} {h} shine ; wash the {n} {h}
share: share send forward pass_on | Sends {an} to a person./Passes {an} on to somebody./Lets another person have {an}. | {v} should get the {n} {h} ; let {v} have the {n} {h} ; send the {n} {h} to {v} ; pass the {n} {h} on to {v}
schedule: schedule plan set_date appoint | Sets a day for {an}./Plans when {an} takes place./Puts {an} into the calendar. | the {n} {h} will be {d} ; plan the {n} {h} {d} ; put the {n} {h} down for {d} ; let us do the {n} {h} {d}
cancel: cancel call_off withdraw revoke | Calls {an} off./Cancels {an} that was planned. | the {n} {h} will not take place ; we do not want the {n} {h} after all ; call off the {n} {h} ; cancel the {n} {h}
rate: rate review score grade | Gives {an} a mark./Stores what somebody thinks of {an}./Notes how good {an} is. | I give the {n} {h} {k} points ; the {n} {h} deserves {k} points ; {k} points for the {n} {h} ; my mark for the {n} {h} is {k}
owner: owner_of owner whose belongs_to | Tells to whom {an} belongs./Finds the owner of {an}. | whose {n} is it {h} ; who owns the {n} {h} ; to whom does the {n} {h} belong ; who is responsible for the {n} {h}
compare: compare contrast difference | Compares two {ns}./Shows how two {ns} differ./Difference between two {ns}. | which is better, the {n} {a} or the {n} {b} ; what is the difference between the {ns} {a} and {b} ; compare the {n} {a} with the {n} {b}
copy: copy duplicate clone replicate | Makes a copy of {an}./Doubles {an}. | I need the {n} {h} twice ; make another one just like the {n} {h} ; duplicate the {n} {h}
lock: lock secure seal protect | Locks {an}./Makes sure that nobody can open {an}. | nobody should get into the {n} {h} ; make the {n} {h} safe ; lock the {n} {h}
history: history log_of past events_of | Shows what happened to {an}./Past events of {an}. | what happened to the {n} {h} so far ; tell me the past of the {n} {h} ; who used the {n} {h} before
remind: remind alert_about notify warn | Reminds somebody of {an}./Sends a warning about {an}. | do not let me forget the {n} {h} {d} ; tell me {d} about the {n} {h} ; remind me of the {n} {h} {d}
"""
# Words for names that only the tests use.
TEST_VERBS = {"create": ["spawn", "enrol"], "delete": ["purge", "scrap"], "show": ["peek", "summon_info"], "list": ["rollcall"],
              "count": ["headcount"], "locate": ["seek", "trace"], "repair": ["patch_up"], "inspect": ["audit"],
              "buy": ["procure"], "stop": ["quell"], "share": ["dispatch"], "clean": ["rinse"], "price": ["appraise"]}


def read_fields():
    """{field: nouns} for training, and for the tests."""
    train, test = {}, {}
    for line in FIELDS.strip().splitlines():
        name, _, nouns = line.partition(": ")
        (test if name.endswith("!") else train)[name.rstrip("!")] = nouns.split()
    return train, test


def read_actions():
    actions = {}
    for line in ACTIONS.strip().splitlines():
        head, descriptions, requests = line.split(" | ")
        key, _, words = head.partition(": ")
        actions[key] = {"words": words.split(), "descriptions": descriptions.split("./"),
                        "requests": [r.strip() for r in requests.split(" ; ")]}
    return actions


TRAIN_FIELDS, TEST_FIELDS = read_fields()
TEST_FIELDS["castle"].remove("banner")  # a thing of the web, too
ACTION = read_actions()
