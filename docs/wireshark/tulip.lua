-- Dissects TULIP frames (docs/wire-tulip.md) and the datagrams in which `airmend link` carries them.
--
-- Use it once:      tshark -X lua_script:docs/wireshark/tulip.lua -r FILE
-- or always:        copy it into the folder that Wireshark names under Help, About, Folders,
--                   "Personal Lua Plugins".
--
-- Frames are found behind EtherType 0x88b5, behind link type USER0 (147), and in UDP datagrams of a
-- port that "Decode As" gives to AIRMEND-LINK. What is encrypted cannot be dissected.

local tulip = Proto("tulip", "TULIP")
local link = Proto("airmend_link", "airmend link")

local KINDS = { [0] = "Control", "Reliable", "Unreliable", "Skip", "Repair" }
local HEADER_LEN, ACK_LEN, COVERED_LEN, MARKS_LEN, CLOCK_LEN = 22, 12, 2, 2, 2

local f = {
    version = ProtoField.uint8("tulip.version", "Version", base.DEC, nil, 0xf0),
    kind = ProtoField.uint8("tulip.kind", "Kind", base.DEC, KINDS, 0x0f),
    flags = ProtoField.uint8("tulip.flags", "Flags", base.HEX),
    ack_present = ProtoField.bool("tulip.flags.ack", "Link ACK present", 8, nil, 0x01),
    poll = ProtoField.bool("tulip.flags.poll", "Answer wanted", 8, nil, 0x02),
    more = ProtoField.bool("tulip.flags.more", "More in this turn", 8, nil, 0x04),
    ethernet = ProtoField.bool("tulip.flags.ethernet", "Payload is Ethernet", 8, nil, 0x08),
    reads_repairs = ProtoField.bool("tulip.flags.reads_repairs", "Reads repair frames", 8, nil, 0x08),
    by_serial = ProtoField.bool("tulip.flags.by_serial", "Reads reports", 8, nil, 0x10),
    report = ProtoField.bool("tulip.flags.report", "Link ACK is a report", 8, nil, 0x20),
    reads_v2 = ProtoField.bool("tulip.flags.reads_version_2", "Reads version 2", 8, nil, 0x40),
    answers_ce = ProtoField.bool("tulip.flags.answers_ce", "Answers for CE", 8, nil, 0x80),
    length = ProtoField.uint16("tulip.length", "Payload length"),
    from = ProtoField.uint32("tulip.from", "Epoch of the sender", base.HEX),
    to = ProtoField.uint32("tulip.to", "Epoch of the receiver", base.HEX),
    serial = ProtoField.uint32("tulip.serial", "Serial number"),
    seq = ProtoField.uint32("tulip.seq", "Sequence number"),
    after = ProtoField.uint16("tulip.after", "After the one so much lower"),
    reads_clock = ProtoField.bool("tulip.reads_clock", "Reads the clock", 16, nil, 0x0001),
    short_reads_clock = ProtoField.bool("tulip.short.reads_clock", "Reads the clock", 8, nil, 0x10),
    packets = ProtoField.uint16("tulip.repair.packets", "Packets in the combination", base.DEC, nil, 0x0fff),
    density = ProtoField.uint16("tulip.repair.density", "Density, in sixteenths less 1", base.DEC, nil, 0xf000),
    next = ProtoField.uint32("tulip.ack.next", "Next expected"),
    highest_serial = ProtoField.uint32("tulip.ack.highest_serial", "Highest serial number received"),
    delay = ProtoField.double("tulip.ack.delay", "Delay in ms"),
    vector_len = ProtoField.uint16("tulip.ack.vector_len", "Bit vector length"),
    vector = ProtoField.bytes("tulip.ack.vector", "Bit vector"),
    arrived = ProtoField.uint32("tulip.ack.arrived", "Arrived beyond it"),
    covered = ProtoField.uint16("tulip.ack.covered", "Transmissions covered", base.DEC, nil, 0x3fff),
    marks = ProtoField.uint16("tulip.ack.marks", "Frames marked CE"),
    clock = ProtoField.double("tulip.ack.clock", "Clock in ms"),
    missing = ProtoField.uint32("tulip.ack.missing", "Transmission missing"),
    -- Version 2: numbers are the lowest bytes of what they stand for.
    short_kind = ProtoField.uint8("tulip.short.kind", "Kind", base.DEC, KINDS, 0x0c),
    short_poll = ProtoField.bool("tulip.short.poll", "Answer wanted", 8, nil, 0x02),
    short_ack = ProtoField.bool("tulip.short.ack", "Link ACK present", 8, nil, 0x01),
    short_long = ProtoField.bool("tulip.short.long", "Numbers of four bytes", 8, nil, 0x80),
    short_answers_ce = ProtoField.bool("tulip.short.answers_ce", "Answers for CE", 8, nil, 0x40),
    short_ethernet = ProtoField.bool("tulip.short.ethernet", "Payload is Ethernet", 8, nil, 0x08),
    short_reads_repairs = ProtoField.bool("tulip.short.reads_repairs", "Reads repair frames", 8, nil, 0x08),
    short_report = ProtoField.bool("tulip.short.report", "Link ACK is a report", 8, nil, 0x04),
    check = ProtoField.uint16("tulip.short.check", "Check", base.HEX),
    becomes = ProtoField.uint8("tulip.short.becomes", "Context that the packet becomes"),
    context = ProtoField.uint8("tulip.short.context", "Context of the differences"),
    differences = ProtoField.bytes("tulip.short.differences", "Differences and payload"),
}
tulip.fields = f

local e_version = ProtoExpert.new("tulip.bad_version", "Version is neither 1 nor 2",
    expert.group.MALFORMED, expert.severity.ERROR)
local e_short = ProtoExpert.new("tulip.short", "Shorter than its header says",
    expert.group.MALFORMED, expert.severity.ERROR)
local e_differences = ProtoExpert.new("tulip.differences",
    "The headers are differences from an earlier packet, which is not looked for",
    expert.group.UNDECODED, expert.severity.NOTE)
tulip.experts = { e_version, e_short, e_differences }

-- The bit vector, its numbers spelt out: those from `first` on, upwards or downwards; numbers wrap at
-- 2^32.
local function dissect_vector(buffer, tree, field, first, step)
    tree:add(f.vector, buffer())
    for j = 0, buffer:len() - 1 do
        local byte = buffer(j, 1)
        for i = 0, 7 do
            if byte:bitfield(7 - i, 1) == 1 then
                tree:add(field, byte, (first + step * (8 * j + i)) % 4294967296)
            end
        end
    end
end

-- Returns how long the link ACK is; nothing if it is cut off.
local function dissect_ack(buffer, tree, is_report)
    local fixed_len = is_report and ACK_LEN + COVERED_LEN or ACK_LEN
    if buffer:len() < fixed_len then return nil end
    local has_marks = is_report and buffer(ACK_LEN, 1):bitfield(0, 1) == 1
    local has_clock = is_report and buffer(ACK_LEN, 1):bitfield(1, 1) == 1
    if has_marks then fixed_len = fixed_len + MARKS_LEN end
    local clock_at = fixed_len
    if has_clock then fixed_len = fixed_len + CLOCK_LEN end
    if buffer:len() < fixed_len then return nil end
    local vector_len = buffer(10, 2):uint()
    if buffer:len() < fixed_len + vector_len then return nil end
    local next, highest = buffer(0, 4):uint(), buffer(4, 4):uint()
    local ack = tree:add(buffer(0, fixed_len + vector_len), "Link ACK, next expected: " .. next)
    ack:add(f.next, buffer(0, 4))
    ack:add(f.highest_serial, buffer(4, 4))
    ack:add(f.delay, buffer(8, 2), buffer(8, 2):uint() * 0.016)
    ack:add(f.vector_len, buffer(10, 2))
    if is_report then ack:add(f.covered, buffer(ACK_LEN, COVERED_LEN)) end
    if has_marks then ack:add(f.marks, buffer(ACK_LEN + COVERED_LEN, MARKS_LEN)) end
    if has_clock then ack:add(f.clock, buffer(clock_at, CLOCK_LEN), buffer(clock_at, CLOCK_LEN):uint() * 0.128) end
    if vector_len > 0 then
        local vector = buffer(fixed_len, vector_len):tvb()
        if is_report then
            dissect_vector(vector, ack, f.missing, highest, -1)
        else
            dissect_vector(vector, ack, f.arrived, next + 1, 1)
        end
    end
    return fixed_len + vector_len
end

local function dissect_header(buffer, tree)
    tree:add(f.version, buffer(0, 1))
    tree:add(f.kind, buffer(0, 1))
    local flags, kind = tree:add(f.flags, buffer(1, 1)), buffer(0, 1):bitfield(4, 4)
    local flag_fields = {
        f.ack_present, f.poll, f.more, kind == 0 and f.reads_repairs or f.ethernet, f.by_serial, f.report, f.reads_v2, f.answers_ce,
    }
    for _, field in ipairs(flag_fields) do
        flags:add(field, buffer(1, 1))
    end
    tree:add(f.length, buffer(2, 2))
    tree:add(f.from, buffer(4, 4))
    tree:add(f.to, buffer(8, 4))
    tree:add(f.serial, buffer(12, 4))
    tree:add(f.seq, buffer(16, 4))
    if kind == 4 then
        tree:add(f.density, buffer(20, 2))
        tree:add(f.packets, buffer(20, 2))
    elseif kind == 0 then
        tree:add(f.reads_clock, buffer(20, 2))
    else
        tree:add(f.after, buffer(20, 2))
    end
end

-- Takes fields from a buffer one after the other; `is_short` once it ends too early.
local Reader = {}
Reader.__index = Reader

function Reader:take(len)
    if self.at + len > self.buffer:len() then
        self.is_short = true
        return nil
    end
    self.at = self.at + len
    return self.buffer(self.at - len, len)
end

function Reader:number(tree, field, len)
    local bytes = self:take(len)
    if bytes then tree:add(field, bytes, bytes:uint()) end
    return bytes and bytes:uint() or 0
end

-- An integer of RFC 9000 section 16, of one, two or four bytes, and these.
function Reader:integer()
    local first = self:take(1)
    if not first then return 0, nil end
    local len = 2 ^ first:bitfield(0, 2)
    self.at = self.at - 1
    local bytes = len <= 4 and self:take(len)
    if not bytes then
        self.is_short = true
        return 0, first
    end
    return bytes:bitfield(2, 8 * len - 2), bytes
end

local function dissect_short_ack(reader, tree, is_report)
    local ack = tree:add(tulip, reader.buffer(reader.at), "Link ACK")
    reader:number(ack, f.next, 3)
    local highest = reader:number(ack, f.highest_serial, 3)
    local delay, bytes = reader:integer()
    if bytes then ack:add(f.delay, bytes, delay * 0.016) end
    if is_report then
        local covered, covered_bytes = reader:integer()
        if covered_bytes then ack:add(f.covered, covered_bytes, math.floor(covered / 2) % 16384) end
        if math.floor(covered / 32768) % 2 == 1 then
            ack:add(f.clock, covered_bytes, math.floor(covered / 65536) * 0.128)
        end
        if covered % 2 == 1 then reader:number(ack, f.marks, 2) end
    end
    local vector_len, vector_bytes = reader:integer()
    if vector_bytes then ack:add(f.vector_len, vector_bytes, vector_len) end
    local vector = not reader.is_short and vector_len > 0 and reader:take(vector_len)
    if vector and is_report then
        dissect_vector(vector:tvb(), ack, f.missing, highest, -1)
    elseif vector then
        ack:add(f.vector, vector)
    end
end

-- A frame of version 2.
local function dissect_short(buffer, tree, pinfo, root)
    local reader = setmetatable({ buffer = buffer, at = 2 }, Reader)
    local kind, flags = buffer(0, 1):bitfield(4, 2), buffer(1, 1)
    tree:add(f.version, buffer(0, 1))
    for _, field in ipairs({ f.short_kind, f.short_poll, f.short_ack }) do
        tree:add(field, buffer(0, 1))
    end
    local eighth = kind == 0 and f.short_reads_repairs or f.short_ethernet
    for _, field in ipairs({ f.short_long, f.short_answers_ce, eighth, f.short_report }) do
        tree:add(field, flags)
    end
    local len, after = flags:bitfield(0, 1) == 1 and 4 or 2, flags:bitfield(2, 2)
    -- A control frame with the flag of differences is a repair frame.
    if kind == 0 and flags:bitfield(6, 1) == 1 then kind = 4 end
    local info = KINDS[kind]
    reader:number(tree, f.serial, len)
    if kind == 4 or kind == 1 or kind == 3 or (kind == 2 and after > 0) then
        info = info .. " " .. reader:number(tree, f.seq, len)
    end
    if kind == 4 and after == 3 then
        local bytes = reader:take(2)
        if bytes then tree:add(f.density, bytes) end
        if bytes then tree:add(f.packets, bytes) end
    elseif kind == 0 then
        tree:add(f.short_reads_clock, flags)
    elseif after < 2 then
        tree:add(f.after, flags, after)
    else
        reader:number(tree, f.after, after - 1)
    end
    reader:number(tree, f.check, 2)
    if buffer(0, 1):bitfield(7, 1) == 1 then
        dissect_short_ack(reader, tree, flags:bitfield(5, 1) == 1)
        info = info .. " ACK"
    end
    local has_packet = kind == 1 or kind == 2
    local has_differences = has_packet and flags:bitfield(6, 1) == 1
    if has_packet and flags:bitfield(7, 1) == 1 then reader:number(tree, f.becomes, 1) end
    if has_differences then reader:number(tree, f.context, 1) end
    pinfo.cols.info:prepend(info .. (has_packet and " | " or ""))
    if reader.is_short then
        tree:add_proto_expert_info(e_short)
    elseif has_differences then
        tree:add(f.differences, buffer(reader.at))
        tree:add_proto_expert_info(e_differences)
    elseif has_packet and reader.at < buffer:len() then
        tree:set_len(reader.at)
        local name = flags:bitfield(4, 1) == 1 and "eth_withoutfcs" or "ip"
        Dissector.get(name):call(buffer(reader.at):tvb(), pinfo, root)
        pinfo.cols.protocol:prepend("TULIP/")
    end
end

function tulip.dissector(buffer, pinfo, root)
    pinfo.cols.protocol = "TULIP"
    local tree = root:add(tulip, buffer())
    if buffer:len() >= 2 and buffer(0, 1):bitfield(0, 4) == 2 then
        dissect_short(buffer, tree, pinfo, root)
        return
    end
    if buffer:len() < HEADER_LEN then
        tree:add_proto_expert_info(e_short)
        return
    end
    dissect_header(buffer, tree)
    if buffer(0, 1):bitfield(0, 4) ~= 1 then
        tree:add_proto_expert_info(e_version)
        return
    end
    local kind, flags = buffer(0, 1):bitfield(4, 4), buffer(1, 1):uint()
    local info = KINDS[kind] or "Unknown kind"
    if kind ~= 0 then info = info .. " " .. buffer(16, 4):uint() end
    local at = HEADER_LEN
    if flags % 2 == 1 then
        local ack_len = dissect_ack(buffer(at):tvb(), tree, math.floor(flags / 32) % 2 == 1)
        if not ack_len then
            tree:add_proto_expert_info(e_short)
            return
        end
        info = info .. " ACK " .. buffer(at, 4):uint()
        at = at + ack_len
    end
    if math.floor(flags / 2) % 2 == 1 then info = info .. " poll" end
    tree:set_len(at)
    local payload_len = math.min(buffer(2, 2):uint(), buffer:len() - at)
    if payload_len > 0 and (kind == 1 or kind == 2) then
        local name = math.floor(flags / 8) % 2 == 1 and "eth_withoutfcs" or "ip"
        Dissector.get(name):call(buffer(at, payload_len):tvb(), pinfo, root)
        pinfo.cols.protocol:prepend("TULIP/")
        info = info .. " | "
    end
    pinfo.cols.info:prepend(info)
end

local DATAGRAMS = {
    "Handshake initiation", "Handshake response", "Sealed frame", "Unknown session", "Open frame",
}
local l_kind = ProtoField.uint8("airmend_link.kind", "Kind", base.DEC, DATAGRAMS)
local l_session = ProtoField.uint24("airmend_link.session", "Session", base.HEX)
local l_counter = ProtoField.uint64("airmend_link.counter", "Counter")
link.fields = { l_kind, l_session, l_counter }

function link.dissector(buffer, pinfo, root)
    if buffer:len() < 1 then return 0 end
    local kind = buffer(0, 1):uint()
    if not DATAGRAMS[kind] then return 0 end
    pinfo.cols.protocol = "AIRMEND"
    pinfo.cols.info = DATAGRAMS[kind]
    local tree = root:add(link, buffer())
    tree:add(l_kind, buffer(0, 1))
    if kind ~= 1 and buffer:len() >= 4 then tree:add(l_session, buffer(1, 3)) end
    if kind == 3 and buffer:len() >= 12 then tree:add(l_counter, buffer(4, 8)) end
    if kind == 5 and buffer:len() > 4 then
        tree:set_len(4)
        tulip.dissector(buffer(4):tvb(), pinfo, root)
    end
    return buffer:len()
end

DissectorTable.get("wtap_encap"):add(wtap.USER0, tulip)
DissectorTable.get("ethertype"):add(0x88b5, link)
DissectorTable.get("udp.port"):add_for_decode_as(link)
